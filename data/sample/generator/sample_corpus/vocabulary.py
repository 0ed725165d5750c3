"""The words of the sample corpus, as tables that can be read and checked row by row.

Every English surface form belongs to one lexeme only, which keeps the English unambiguous and lets
words be counted in plain text.
"""

from __future__ import annotations

# classes | counter ("-": never counted with a number) | english korean, ...
NOUNS = """
person            | 명   | teacher 선생님, doctor 의사, student 학생, singer 가수, writer 작가, farmer 농부
person            | 명   | nurse 간호사, driver 운전사, painter 화가, lawyer 변호사, scientist 과학자
person            | 명   | soldier 군인, chef 요리사, baker 제빵사
person            | 명   | child 아이, man 남자, woman 여자, boy 소년, girl 소녀, guest 손님, neighbor 이웃
animal            | 마리 | dog 개, cat 고양이, bird 새, rabbit 토끼, bear 곰, cow 소, pig 돼지, chicken 닭
animal            | 마리 | monkey 원숭이, horse 말, fox 여우, duck 오리, mouse 쥐, wolf 늑대, lion 사자, tiger 호랑이
edible raw        | 개   | apple 사과, banana 바나나, orange 오렌지, tomato 토마토, peach 복숭아, pear 배
edible raw root   | 개   | potato 감자, carrot 당근, onion 양파, egg 달걀
edible baked      | 개   | cake 케이크, cookie 쿠키, sandwich 샌드위치, hamburger 햄버거
dish mass         | -    | bread 빵, rice 밥, soup 수프, meat 고기, cheese 치즈, fish 생선
drink mass cup    | 잔   | coffee 커피, tea 차, cocoa 코코아
drink mass glass  | 잔   | water 물, milk 우유, juice 주스
text volume       | 권   | book 책, novel 소설, magazine 잡지, dictionary 사전, textbook 교과서
text written      | 통   | letter 편지, email 이메일
text written      | 편   | poem 시, essay 수필
clothing          | 벌   | shirt 셔츠, coat 외투, dress 드레스, jacket 재킷, sweater 스웨터
vehicle motor     | 대   | car 자동차, bus 버스, truck 트럭, taxi 택시
vehicle ridden    | 대   | bicycle 자전거
device            | 대   | computer 컴퓨터, camera 카메라, phone 전화기, radio 라디오
instrument        | 대   | guitar 기타, piano 피아노, violin 바이올린
sheet             | 장   | photo 사진, ticket 표, map 지도, picture 그림, stamp 우표
object furniture  | 개   | chair 의자, table 탁자, lamp 램프, mirror 거울, clock 시계
object container  | 개   | bag 가방, box 상자, basket 바구니
object small      | 개   | key 열쇠, ball 공, toy 장난감, gift 선물, bottle 병, umbrella 우산, doll 인형, hat 모자
tool              | 자루 | pencil 연필, knife 칼, brush 붓
flower            | 송이 | flower 꽃, rose 장미, tulip 튤립
tree              | 그루 | tree 나무
door              | 개   | door 문, window 창문, gate 대문
crossing          | 개   | river 강, road 길, bridge 다리
building          | 채   | house 집
building tall     | 개   | tower 탑, wall 벽
film              | 편   | movie 영화, drama 드라마, cartoon 만화
song              | 곡   | song 노래
school mass       | -    | English 영어, Korean 한국어, French 프랑스어, math 수학, history 역사
school mass       | -    | science 과학, music 음악
kin               | -    | mother 어머니, father 아버지, grandmother 할머니, uncle 삼촌
"""

# preposition | english korean, ... ; the article is part of the English where one is needed
PLACES = """
at | school 학교, the library 도서관, the station 역, the market 시장, the bank 은행, the airport 공항
at | the beach 해변, the hotel 호텔, the restaurant 식당, the university 대학교, the hospital 병원
at | the theater 극장, the museum 박물관
in | the park 공원, the garden 정원, the kitchen 부엌, the room 방, the office 사무실, the classroom 교실
in | the village 마을, the forest 숲, Seoul 서울, Busan 부산, London 런던, Paris 파리, Tokyo 도쿄
"""
CITIES = ("Seoul", "Busan", "London", "Paris", "Tokyo")
INSIDE = ("the kitchen", "the room", "the office", "the classroom", "the garden", "the park")
SCENERY = ("the park", "the garden", "the beach", "the village", "the forest", "the museum", *CITIES)

NAMES = """
she | Mina 미나, Anna 안나, Emma 에마, Suji 수지, Sora 소라, Laura 로라, Maria 마리아, Yuna 유나
she | Lucy 루시, Jian 지안
he  | Tom 톰, Minjun 민준, Paul 폴, David 데이비드, Junho 준호, Peter 피터, Daniel 다니엘, Sam 샘
he  | Kevin 케빈, Minsu 민수
"""

# english[/past[/gerund]][+particle] | korean | irregular | object classes (or =noun) | flags
# Flags: state (no progressive), animal (animals may do it), tool (with a ...), place (a place may follow).
VERBS = """
eat/ate         | 먹다 |      | edible dish | animal place
drink/drank     | 마시다 |    | drink | animal place
cook            | 요리하다 |  | root =meat =fish =rice =soup | place
make/made       | 만들다 |    | baked furniture container =toy =doll =soup =cheese =bread | place
buy/bought      | 사다 |      | goods | place
sell/sold       | 팔다 |      | goods | place
choose/chose    | 고르다 | 르 | volume clothing small flower sheet furniture container | place
find/found      | 찾다 |      | small sheet tool container device =dog =cat | place
lose/lost       | 잃어버리다 || small sheet container =camera =phone =coat =jacket =pencil | place
borrow          | 빌리다 |    | volume device instrument ridden =car =umbrella =map =knife =pencil |
read/read       | 읽다 |      | text | place
write/wrote     | 쓰다 |      | written =novel | tool place
draw/drew       | 그리다 |    | animal flower tree =map =picture =house | tool place
watch           | 보다 |      | film | place
see/saw         | 보다 |      | animal person | animal place
listen+to       | 듣다 | ㄷ   | song =music =radio | place
sing/sang       | 부르다 | 르 | song | place
play            | 연주하다 |  | instrument | place
open            | 열다 |      | door =box =bag =bottle |
close           | 닫다 |      | door |
wash            | 씻다 |      | raw =bottle =knife =brush | place
clean           | 청소하다 |  | inside |
use             | 사용하다 |  | device tool =dictionary =map =umbrella =mirror | place
fix             | 고치다 |    | vehicle device furniture instrument =toy =door =window |
drive/drove     | 운전하다 |  | motor |
ride/rode       | 타다 |      | ridden =bus =taxi =horse |
wear/wore       | 입다 |      | clothing |
carry           | 나르다 | 르 | furniture container =piano =computer |
push            | 밀다 |      | door =car =bicycle =chair =table =box |
throw/threw     | 던지다 |    | =ball =bottle =hat =bag =key =toy | place
catch/caught    | 잡다 |      | =ball =fish =mouse =rabbit =bird =chicken =fox =duck | animal place
hide/hid        | 숨기다 |    | sheet =key =gift =letter =toy =doll =cookie =cheese | place
pick/picked+up  | 줍다 | ㅂ   | =ball =key =pencil =photo =ticket =bottle =hat =stamp | place
collect         | 모으다 |    | =photo =stamp =map =doll =clock =picture =bottle |
plant           | 심다 |      | flower tree | place
build/built     | 짓다 | ㅅ   | building =bridge | place
study           | 공부하다 |  | school | place
learn           | 배우다 |    | school | place
visit           | 방문하다 |  | place |
cross           | 건너다 |    | crossing | animal
remember        | 기억하다 |  | person friend film song =poem =novel | state
forget/forgot/forgetting | 잊다 | | person friend film song =poem =novel |
like            | 좋아하다 |  | edible drink animal instrument school film friend dish song | state
hate            | 싫어하다 |  | edible drink animal instrument school film friend dish song | state
love            | 사랑하다 |  | friend person | state
know/knew       | 알다 |      | friend person =song =poem | state
meet/met        | 만나다 |    | friend person | place
help            | 돕다 | ㅂ   | friend person | place
wait+for        | 기다리다 |  | friend person =bus =taxi =letter | place
invite          | 초대하다 |  | friend person |
believe         | 믿다 |      | friend person | state
follow          | 따라가다 |  | friend person animal | animal
hug/hugged/hugging | 안다 |   | friend =child =doll =dog =cat =mother | place
praise          | 칭찬하다 |  | friend person |
touch           | 만지다 |    | animal instrument flower furniture |
give/gave       | 주다 |      | volume flower small edible drink sheet | recipient
send/sent       | 보내다 |    | written flower sheet =gift =book =magazine | recipient
show/showed     | 보여 주다 | | sheet volume clothing =letter =camera =toy =doll =car | recipient
lend/lent       | 빌려주다 |  | volume device instrument ridden =car =umbrella | recipient
teach/taught    | 가르치다 |  | school | recipient
"""

# english | korean | irregular | flags: where a place stands with 에 (goal), 에서 (place) or 로 (toward)
INTRANSITIVES = """
sleep/slept       | 자다     |    | place animal
work              | 일하다   |    | place
rest              | 쉬다     |    | place animal
run/ran/running   | 달리다   |    | place animal
walk              | 걷다     | ㄷ | place animal
swim/swam/swimming | 수영하다 |   | animal
dance             | 춤추다   |    | place
cry               | 울다     |    | place
laugh             | 웃다     |    | place
arrive+at         | 도착하다 |    | goal
go/went+to        | 가다     |    | goal ride
come/came+to      | 오다     |    | goal ride
return+to         | 돌아오다 |    | goal ride
live              | 살다     |    | home
leave/left+for    | 떠나다   |    | toward ride
travel+to         | 여행하다 |    | toward ride
"""

# english/comparative | korean | irregular | noun classes
ADJECTIVES = """
big/bigger         | 크다     |    | animal motor container building device edible furniture
small/smaller      | 작다     |    | animal container device edible small furniture building
heavy/heavier      | 무겁다   | ㅂ | furniture container device =truck =guitar =dictionary
light/lighter      | 가볍다   | ㅂ | container device clothing =chair =umbrella =bicycle
expensive          | 비싸다   |    | vehicle device instrument clothing furniture =cheese =meat =ticket =flower =bag
cheap/cheaper      | 싸다     |    | vehicle device clothing small edible
red/redder         | 빨갛다   | ㅎ | clothing vehicle flower container =ball =hat =umbrella =apple =door
white/whiter       | 하얗다   | ㅎ | clothing vehicle flower =dog =cat =horse =rabbit =house =wall =hat
blue/bluer         | 파랗다   | ㅎ | clothing vehicle container door =hat =ball =umbrella =bottle
yellow/yellower    | 노랗다   | ㅎ | clothing flower container =bus =taxi =hat =bird =umbrella
black/blacker      | 까맣다   | ㅎ | clothing motor =dog =cat =bird =bear =horse =bag =hat =umbrella =piano
beautiful          | 아름답다 | ㅂ | flower tree scenery song dress =poem =picture =bird =horse =violin
pretty/prettier    | 예쁘다   |    | flower clothing =doll =hat =bag =gift =basket =cat =bird
long/longer        | 길다     |    | text film song crossing clothing =umbrella
short/shorter      | 짧다     |    | text film song =pencil =coat =dress =road =bridge
sweet/sweeter      | 달다     |    | =apple =banana =orange =peach =pear =cake =cookie =cocoa =juice =coffee =carrot
hot/hotter         | 뜨겁다   | ㅂ | drink =soup =rice =bread =potato =meat
cold/colder        | 차갑다   | ㅂ | drink =soup =rice =fish =meat =potato
salty/saltier      | 짜다     |    | dish =potato =cookie =sandwich =egg
spicy/spicier      | 맵다     | ㅂ | =soup =meat =fish =rice =onion =hamburger =sandwich
bitter             | 쓰다     |    | =coffee =tea =cocoa =onion =juice =orange
delicious          | 맛있다   |    | edible dish drink
fresh/fresher      | 신선하다 |    | raw =milk =juice =fish =meat =bread
interesting        | 재미있다 |    | text film school
boring             | 지루하다 |    | text film school
difficult          | 어렵다   | ㅂ | text school song
easy/easier        | 쉽다     | ㅂ | volume school song
thick/thicker      | 두껍다   | ㅂ | volume clothing =wall
thin/thinner       | 얇다     |    | volume clothing =wall
useful             | 유용하다 |    | device tool volume =map =bag =box =bicycle
dirty/dirtier      | 더럽다   | ㅂ | clothing container inside small =car =truck =window =dog =pig =river =road
deep/deeper        | 깊다     |    | =river =box =basket
wide/wider         | 넓다     |    | crossing inside =gate =window =table
narrow/narrower    | 좁다     |    | =road =bridge =river =room =kitchen =office =gate =door
dangerous          | 위험하다 |    | crossing =knife =wolf =tiger =lion =bear =forest
fast/faster        | 빠르다   | 르 | vehicle =horse =dog =rabbit =tiger =fox =mouse
slow/slower        | 느리다   |    | vehicle =cow =duck =pig =computer =song
noisy/noisier      | 시끄럽다 | ㅂ | inside =market =station =child =dog =duck =truck =student =restaurant
quiet/quieter      | 조용하다 |    | inside =library =cat =village =museum =student =guest =forest =hotel
tired              | 피곤하다 |    | person kin animal friend
sick/sicker        | 아프다   |    | person kin animal friend
hungry/hungrier    | 배고프다 |    | person kin animal friend
thirsty/thirstier  | 목마르다 | 르 | person kin animal friend
full               | 배부르다 | 르 | animal friend
happy/happier      | 행복하다 |    | person kin friend
sad/sadder         | 슬프다   |    | person kin friend film song
busy/busier        | 바쁘다   |    | person kin friend =market =restaurant =station
kind/kinder        | 친절하다 |    | person kin friend
smart/smarter      | 똑똑하다 |    | person friend =dog =monkey =fox =horse
famous             | 유명하다 |    | friend =singer =writer =painter =scientist =chef =doctor =museum =song
young/younger      | 젊다     |    | =teacher =doctor =nurse =lawyer =farmer =writer =singer =soldier =man =woman
lazy/lazier        | 게으르다 | 르 | person friend =cat =bear =pig
brave/braver       | 용감하다 |    | person friend =dog =lion =horse
strong/stronger    | 강하다   |    | person friend =lion =tiger =bear =horse =wolf =cow
"""

# tense | english korean ("_" stands for a space)
TIMES = """
past    | yesterday 어제, last_night 어젯밤에, last_week 지난주에, last_year 작년에, this_morning 오늘_아침에
future  | tomorrow 내일, tonight 오늘_밤에, next_week 다음_주에, next_year 내년에, soon 곧
present | every_day 매일, every_morning 매일_아침, every_evening 매일_저녁, every_week 매주
both    | on_Monday 월요일에, on_Tuesday 화요일에, on_Friday 금요일에, on_Saturday 토요일에, on_Sunday 일요일에
"""

FREQUENCIES = (("often", "자주"), ("always", "항상"), ("sometimes", "가끔"), ("usually", "보통"))
MANNERS = (
    ("quickly", "빨리"), ("slowly", "천천히"), ("quietly", "조용히"), ("carefully", "조심스럽게"), ("again", "다시"),
    ("together", "함께"), ("early", "일찍"), ("late", "늦게"), ("alone", "혼자"),
)  # fmt: skip
RIDES = (
    ("bus", "버스"), ("train", "기차"), ("plane", "비행기"), ("subway", "지하철"), ("taxi", "택시"), ("ship", "배"),
)  # fmt: skip
NUMBERS = (
    ("one", "한"), ("two", "두"), ("three", "세"), ("four", "네"), ("five", "다섯"),
    ("six", "여섯"), ("seven", "일곱"), ("eight", "여덟"), ("nine", "아홉"), ("ten", "열"),
)  # fmt: skip

# Whatever can be bought and sold.
GOODS = (
    "edible", "dish", "drink", "volume", "clothing", "motor", "ridden", "device", "instrument", "flower", "small",
    "container",
)  # fmt: skip
