"""Words that stand for numbers, as patterns of the beginnings of words in many languages.

They tell whether the other side may have a number in words. Patterns are compiled when they are first needed.
"""

import re
from functools import cache

# Beginnings of words; those of few letters and those with a point are whole words. After a stroke: of languages without
# blanks between words, or with endings after them. A beginning that another word shares only makes a flag rarer.
_NUMBERS = """
0: zero zéro cero null nul noll no none not kein keine keinen nicht ноль нул sıfır शून्य صفر / 영 零 〇 ゼロ
1: one once first single a an ein eine eins einen einem einer erst un une prem uno una prim um uma een één eerst et
    en ett först først jed pierw один одн перв оди перш bir ilk satu pertama yksi ensi egy első ένα μία μια واحد أول
    jeden. jedn एक पहल một / 一 한 하나 첫 ひと eineinhalb anderthalb
2: two twice twin second both double pair zwei zwo beid doppel paar deux deuxi dos segund ambos due secondo entramb
    dois duas twee två andra dwa dwie dwó dwu drug dva dvě два две дву двух двум втор друг обе оба iki dua kaksi kah
    két kett δύο δυο اثن दो दूसर hai / [二两兩] 두 둘 ふた
3: three third thrice triple drei dritt trois tres tercer tre tri três drie derde trzy trzec tři třet три тре трех
    трёх üç tiga kolme három harm τρία τρεις τρίτ ثلاث तीन तीसर tiers terci terz terç / 三 세 셋 석 みっ
4: four fourth vier quatr cuatro cuart quart quattro fyra fjärd fire fjerde czter čty четыр четв dört empat neljä
    négy τέσσερ أربع चार bốn / 四 네 넷 넉 よっ よん
5: five fifth fünf cinq cinco quint cinque vijf fem femt pięć pięci piąt pět пят п'ят beş lima viisi öt πέντε خمس
    पाँच पांच năm / 五 다섯 いつ
6: six sixth sechs seis sext sei zes sex seks sześ szóst šest шест шіст altı enam kuusi hat έξι ست छह छः sáu / 六 여섯
    むっ
7: seven sieb sept. siete séptim sette zeven sju syv siedem siódm sedm сем седьм сім yedi tujuh seitsem hét επτά
    εφτά سبع सात bảy / 七 일곱 なな
8: eight acht huit ocho octav otto oito åtta åtte otte osiem ósm osm вос вісім sekiz delapan kahdeksan nyolc οκτώ
    οχτώ ثمان आठ tám / 八 여덟 やっ
9: nine nint neun neuf nueve noven nove negen nio dziewię dziewią devět девят дев'ят dokuz sembilan yhdeksän kilenc
    εννέα εννιά تسع नौ chín / 九 아홉
10: ten tenth decade zehn dix diez décim dieci dez tien tio dziesię deset десят on sepuluh kymmen tíz δέκα عشر दस
    mười / 十 열 とお
11: eleven elf elft onze once undici elva elleve jedena одиннадцат одинадцят sebelas yksitoista tizenegy έντεκα
    ग्यारह / 十一 열한
12: twelve twelfth dozen noon midnight zwölf dutzend mittag mitternacht douze doce dodici doze twaalf tolv dwana
    dvan двенадцат дванадцят kaksitoista tizenkettő δώδεκα बारह / 十二 열두 정오
"""
_LARGE = """
half quarter halb dozen hundred thousand million billion twenty thirty forty fifty sixty seventy eighty ninety
thirteen fourteen fifteen sixteen seventeen eighteen nineteen thirteenth fourteenth fifteenth twentieth dutzend
hundert tausend million milliard zwanzig cent. cents. mille. treize quatorze quinze vingt trente quarante cien. mil.
veinte treinta сто двести тысяч двадцат тридцат /
[一二三四五六七八九两兩数數几幾][十百千萬万] [수몇일이삼사오육칠팔구][십백천만] 스무 스물 서른 마흔 쉰
hundert tausend dreißig (?:zwan|vier|fünf|sech|sieb|acht|neun)zig (?:drei|vier|fünf|sech|sieb|acht|neun)zehn viertel
"""
_HALF = """
half quarter halb viertel dreiviertel demi quart media medio mezz meia половин пол puoli halv pół buçuk / 반 半 刻
einhalb anderthalb
"""
_MONTHS = """
1: jan gen ene янв січ stycz sty led leden oca يناير जनवरी enero
2: feb fév fev févr лют фев lut únor şub فبراير फरवरी febr
3: mar mär märz mars marz maar març марта март берез břez مارس मार्च mart
4: apr avr abr apri апр квіт kwie dub nis أبريل अप्रैल abri avri
5: may mai mei maj mag mayo maio maggio мая май трав květ mayıs مايو मई
6: jun juin giu juni июн черв czerw červen haz يونيو जून
7: jul juil lug juli июл лип lip červenec tem يوليو जुलाई
8: aug aoû ago agos авг серп sier srp ağu أغسطس अगस्त août
9: sep set sept sett сен верес wrze září eyl سبتمبر सितंबर
10: oct okt oto out ott otto окт жовт paźd říj eki أكتوبر अक्टूबर octo okto outu ottobre
11: nov noy ноя листоп list kas نوفمبر नवंबर nove
12: dec dez déc dic dici дек груд grud pros ara ديسمبر दिसंबर dece deze déce
"""
# Power of ten: words. Several rows may have one power, and "billion" is 9 or 12 by the language.
_SCALES = """
2: hundred|hundert
3: k\\b|thousand|tausend|tsd|mille?\\b|mil\\b|mila\\b|duizend|tusen|tuhat|tys|tis|тыс|тис|bin\\b|ribu|nghìn|ngàn|ezer
3: हज़ार|हजार|هزار|ألف|آلاف|אלף
5: lakh|लाख
6: m\\b|millions?\\b|millionen|mill?i[oó]n|milh|mio\\b|mill?ion|milj|mln|mn\\b|миллион|млн|мільйон|juta|triệu
6: εκατομμύρι|ล้าน|मिलियन|مليون|میلیون|מיליון
7: crore|करोड़
9: bn\\b|billion|milliard|miliard|mrd|mld|md\\b|miljard|миллиард|млрд|мільярд|milyar|miliar|tỷ|bilh|δισεκατομμύρι
12: trillion|billion|bill[oó]n|bilion|biljoen|biljon|tn\\b|триллион|трлн
"""
_LETTERS = "a-zäöüéèçàâêîôûãõáíóúñåæøąćęłńśźżčěřšůýžőűığşа-яёіїєґα-ωάέήίόύώ"


@cache
def cardinal_words(number: int) -> re.Pattern[str]:
    """Return a pattern of the words for a number from 0 to 12: cardinal, ordinal, and others such as "twice"."""
    return _words(_rows(_NUMBERS)[number][1], whole=4)


@cache
def month_words(number: int) -> re.Pattern[str]:
    """Return a pattern of the names of a month from 1 to 12."""
    return _words(_rows(_MONTHS)[number - 1][1], whole=0)


@cache
def round_words() -> re.Pattern[str]:
    """Return a pattern of words for round numbers above 12: tens, hundreds, thousands, and a half of them."""
    return _words(_LARGE, whole=5)


@cache
def half_words() -> re.Pattern[str]:
    """Return a pattern of words for half an hour or a quarter."""
    return _words(_HALF, whole=4)


@cache
def scale_words() -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Return powers of ten and patterns of the words after a number that multiply it by them."""
    return tuple((power, re.compile(rf"[\s-]?(?:{listed})", re.IGNORECASE)) for power, listed in _rows(_SCALES))


def _rows(table: str) -> list[tuple[int, str]]:
    """Return the rows of a table, each of which begins with a number."""
    return [(int(number), row.strip()) for number, row in re.findall(r"^(\d+): ((?:.|\n(?!\d))+)", table, re.MULTILINE)]


def _words(listed: str, whole: int) -> re.Pattern[str]:
    """Return a pattern of the words. whole: those of ASCII with fewer letters are whole words."""
    beginnings, _, others = listed.partition(" /")
    starts = [
        f"{each.rstrip('.')}(?![{_LETTERS}])" if each[-1] == "." or (len(each) < whole and each.isascii()) else each
        for each in beginnings.split()
    ]
    # Not after a letter, which would be inside a word; nor after digits: the "thousand" of "5 thousand" is theirs.
    after_blank = rf"(?<!\d[\s-])(?<![{_LETTERS}])(?:{'|'.join(starts)})"
    return re.compile("|".join([after_blank, *others.split()]), re.IGNORECASE)
