;; The two loops in which a translation spends its time: dot products of a row of weights w and a row of activations x,
;;   sum_i w[i] x[i]
;; Rows of w have $bytes bytes, and are filled with zeros to a multiple of 16 values, which one turn of the loop takes.
;; matrix.js has what an assembler makes of this text, and the same two functions in JavaScript.
(module
  (import "page" "memory" (memory 1))

  ;; w in int8, x in int16: products of 24 bits, exact sums in 32 bits.
  (func (export "int8") (param $w i32) (param $x i32) (param $bytes i32) (result i32)
    (local $end i32) (local $sum v128)
    (local.set $end (i32.add (local.get $w) (local.get $bytes)))
    (loop $values
      (local.set $sum
        (i32x4.add
          (local.get $sum)
          (i32x4.add
            (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $w)) (v128.load (local.get $x)))
            (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $w)) (v128.load offset=16 (local.get $x))))))
      (local.set $w (i32.add (local.get $w) (i32.const 16)))
      (local.set $x (i32.add (local.get $x) (i32.const 32)))
      (br_if $values (i32.lt_u (local.get $w) (local.get $end))))
    (i32.add
      (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
      (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))

  ;; w and x in fp32.
  (func (export "fp32") (param $w i32) (param $x i32) (param $bytes i32) (result f32)
    (local $end i32) (local $even v128) (local $odd v128)
    (local.set $end (i32.add (local.get $w) (local.get $bytes)))
    (loop $values
      (local.set $even
        (f32x4.add (local.get $even) (f32x4.mul (v128.load (local.get $w)) (v128.load (local.get $x)))))
      (local.set $odd
        (f32x4.add
          (local.get $odd)
          (f32x4.mul (v128.load offset=16 (local.get $w)) (v128.load offset=16 (local.get $x)))))
      (local.set $w (i32.add (local.get $w) (i32.const 32)))
      (local.set $x (i32.add (local.get $x) (i32.const 32)))
      (br_if $values (i32.lt_u (local.get $w) (local.get $end))))
    (local.set $even (f32x4.add (local.get $even) (local.get $odd)))
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $even)) (f32x4.extract_lane 1 (local.get $even)))
      (f32.add (f32x4.extract_lane 2 (local.get $even)) (f32x4.extract_lane 3 (local.get $even))))))
