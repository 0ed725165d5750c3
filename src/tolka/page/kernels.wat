;; The two loops in which a translation spends its time: N rows of activations x times a matrix W with O rows,
;;   out[n, o] = sum_i W[o, i] x[n, i]                                          W (O, I), x (N, I), out (N, O)
;; Each row of W is read once for all N, so that the hypotheses of a beam share one pass over the weights.
;; A row has $stride bytes in W, and is filled with zeros to a multiple of 16 values, which one turn of the loop takes.
;; kernels.js has what an assembler makes of this text; matrix.js has the same two functions in JavaScript.
(module
  (import "page" "memory" (memory 1))

  ;; W in int8, x in int16: products of 24 bits, exact sums in 32 bits.
  (func (export "int8Rows")
    (param $w i32) (param $x i32) (param $out i32) (param $rows i32) (param $stride i32) (param $n i32)
    (local $left i32) (local $count i32) (local $activations i32) (local $place i32) (local $i i32) (local $sum v128)
    (local.set $left (local.get $rows))
    (loop $row
      (local.set $count (local.get $n))
      (local.set $activations (local.get $x))
      (local.set $place (local.get $out))
      (loop $vector
        (local.set $sum (v128.const i32x4 0 0 0 0))
        (local.set $i (i32.const 0))
        (loop $values
          (local.set $sum
            (i32x4.add
              (local.get $sum)
              (i32x4.add
                (i32x4.dot_i16x8_s
                  (v128.load8x8_s (i32.add (local.get $w) (local.get $i)))
                  (v128.load (i32.add (local.get $activations) (i32.shl (local.get $i) (i32.const 1)))))
                (i32x4.dot_i16x8_s
                  (v128.load8x8_s offset=8 (i32.add (local.get $w) (local.get $i)))
                  (v128.load offset=16 (i32.add (local.get $activations) (i32.shl (local.get $i) (i32.const 1))))))))
          (local.set $i (i32.add (local.get $i) (i32.const 16)))
          (br_if $values (i32.lt_u (local.get $i) (local.get $stride))))
        (i32.store (local.get $place)
          (i32.add
            (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
            (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
        (local.set $place (i32.add (local.get $place) (i32.shl (local.get $rows) (i32.const 2))))
        (local.set $activations (i32.add (local.get $activations) (i32.shl (local.get $stride) (i32.const 1))))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br_if $vector (local.get $count)))
      (local.set $w (i32.add (local.get $w) (local.get $stride)))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $row (local.get $left))))

  ;; W and x in fp32.
  (func (export "fp32Rows")
    (param $w i32) (param $x i32) (param $out i32) (param $rows i32) (param $stride i32) (param $n i32)
    (local $left i32) (local $count i32) (local $activations i32) (local $place i32) (local $i i32)
    (local $even v128) (local $odd v128)
    (local.set $left (local.get $rows))
    (loop $row
      (local.set $count (local.get $n))
      (local.set $activations (local.get $x))
      (local.set $place (local.get $out))
      (loop $vector
        (local.set $even (v128.const i32x4 0 0 0 0))
        (local.set $odd (v128.const i32x4 0 0 0 0))
        (local.set $i (i32.const 0))
        (loop $values
          (local.set $even
            (f32x4.add
              (local.get $even)
              (f32x4.mul
                (v128.load (i32.add (local.get $w) (local.get $i)))
                (v128.load (i32.add (local.get $activations) (local.get $i))))))
          (local.set $odd
            (f32x4.add
              (local.get $odd)
              (f32x4.mul
                (v128.load offset=16 (i32.add (local.get $w) (local.get $i)))
                (v128.load offset=16 (i32.add (local.get $activations) (local.get $i))))))
          (local.set $i (i32.add (local.get $i) (i32.const 32)))
          (br_if $values (i32.lt_u (local.get $i) (local.get $stride))))
        (local.set $even (f32x4.add (local.get $even) (local.get $odd)))
        (f32.store (local.get $place)
          (f32.add
            (f32.add (f32x4.extract_lane 0 (local.get $even)) (f32x4.extract_lane 1 (local.get $even)))
            (f32.add (f32x4.extract_lane 2 (local.get $even)) (f32x4.extract_lane 3 (local.get $even)))))
        (local.set $place (i32.add (local.get $place) (i32.shl (local.get $rows) (i32.const 2))))
        (local.set $activations (i32.add (local.get $activations) (local.get $stride)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br_if $vector (local.get $count)))
      (local.set $w (i32.add (local.get $w) (local.get $stride)))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $row (local.get $left)))))
