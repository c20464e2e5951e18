# Measures the registration of 1 MiB of memory that was just written, a second registration of the same memory, and the
# last deregistration: medians in µs.
import ctypes
import mmap
import statistics
import time

SIZE, ROUNDS = 1 << 20, 100
verbs = ctypes.CDLL("libibverbs.so.1")
for name in "ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr":
    getattr(verbs, name).restype = ctypes.c_void_p

devices = ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
context = ctypes.c_void_p(verbs.ibv_open_device(ctypes.c_void_p(devices[0])))
pd = ctypes.c_void_p(verbs.ibv_alloc_pd(context))
times = {"first": [], "again": [], "last": []}


def timed(name, call, *arguments):
    begin = time.perf_counter_ns()
    result = call(*arguments)
    times[name].append((time.perf_counter_ns() - begin) / 1000)
    return result


for _ in range(ROUNDS):
    memory = mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = bytes(SIZE)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    first = timed("first", verbs.ibv_reg_mr, pd, address, ctypes.c_size_t(SIZE), 7)
    assert first
    for _ in range(10):
        again = timed("again", verbs.ibv_reg_mr, pd, address, ctypes.c_size_t(SIZE), 7)
        assert again
        verbs.ibv_dereg_mr(ctypes.c_void_p(again))
    timed("last", verbs.ibv_dereg_mr, ctypes.c_void_p(first))
print(*("%s %.1f" % (name, statistics.median(list)) for name, list in times.items()))
