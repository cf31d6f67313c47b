%r = numba_cute.pipeline.TmaStoreFence 2 : !numba_cute.pipeline.TmaStoreFence<num_stages = 2>

%s = numba_cute.static : !numba_cute.pipeline.NamedBarrier<barrier_id = 1, num_threads = 64>
%r = numba_cute.pipeline.NamedBarrier.get_barrier %s : !cute.int_tuple<"1">

%s = numba_cute.static : !numba_cute.pipeline.NamedBarrier<barrier_id = 1, num_threads = 64>
%r = numba_cute.pipeline.NamedBarrier.max %s : !cute.int_tuple<"16">
