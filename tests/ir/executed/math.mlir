%r = numba_cute.math.abs %f

%r = numba_cute.math.absf %f

%r = numba_cute.math.absi %m

%r = numba_cute.math.acos %f

%r = numba_cute.math.acosh %g

%r = numba_cute.math.add %f, %g

%r = numba_cute.math.asin %f

%r = numba_cute.math.asinh %f

%r = numba_cute.math.atan %f

%r = numba_cute.math.atan2 %f, %g

%r = numba_cute.math.atanh %f

%r = numba_cute.math.cbrt %f

%r = numba_cute.math.ceil %f

%r = numba_cute.math.clamp %f, 0.0, 0.25

%r = numba_cute.math.copysign %f, %g

%r = numba_cute.math.cos %f

%r = numba_cute.math.cosh %f

%r = numba_cute.math.div %f, %g

%r = numba_cute.math.erf %f

%r = numba_cute.math.erfc %f

%r = numba_cute.math.exp %f

%r = numba_cute.math.exp2 %f

%r = numba_cute.math.expm1 %f

%r = numba_cute.math.floor %f

%r = numba_cute.math.fma %f, %g, %f

%r = numba_cute.math.fpowi %g, 3

%r = numba_cute.math.ipowi %m, 3

%r = numba_cute.math.isfinite %f

%r = numba_cute.math.isinf %f

%r = numba_cute.math.isnan %f

%r = numba_cute.math.isnormal %f

%r = numba_cute.math.log %f

%r = numba_cute.math.log10 %f

%r = numba_cute.math.log1p %f

%r = numba_cute.math.log2 %f

%r = numba_cute.math.max %f, %g

%r = numba_cute.math.min %f, %g

%r = numba_cute.math.mul %f, %g

%r = numba_cute.math.neg %f

%r = numba_cute.math.pow %f, %g

%r = numba_cute.math.rcp %f

%r = numba_cute.math.rem %f, %g

%r = numba_cute.math.round %f

%r = numba_cute.math.roundeven %f

%r = numba_cute.math.rsqrt %f

%r = numba_cute.math.sin %f

%r = numba_cute.math.sincos %f

%r = numba_cute.math.sinh %f

%r = numba_cute.math.sqrt %f

%r = numba_cute.math.sub %f, %g

%r = numba_cute.math.tan %f

%r = numba_cute.math.tanh %f

%r = numba_cute.math.trunc %f
