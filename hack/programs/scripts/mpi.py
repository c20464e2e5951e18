# Tests messages between ranks 0 and 1, a collective of all ranks, and one-sided access to memory of all ranks. For the
# latter Open MPI opens the device a second time.
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
for length in (8, 1024, 65536, 1 << 20):
    got = bytearray(length)
    for i in range(20):
        message = bytes([i + rank]) * length
        if rank == 0:
            world.Send([message, MPI.BYTE], dest=1)
            world.Recv([got, MPI.BYTE], source=1)
        elif rank == 1:
            world.Recv([got, MPI.BYTE], source=0)
            world.Send([message, MPI.BYTE], dest=0)
        if rank < 2:
            assert got == bytes([i + 1 - rank]) * length
assert world.allreduce(rank + 1) == size * (size + 1) // 2

window = MPI.Win.Allocate(8 * (size + 1), 8, comm=world)
memory = memoryview(window.tomemory()).cast("B").cast("q")
for at in range(size + 1):
    memory[at] = -1
window.Fence()
for target in range(size):
    window.Put([array("q", [rank]), MPI.INT64_T], target, rank)
window.Fence()
assert memory.tolist() == [*range(size), -1]
got = array("q", [-9] * size)
window.Get([got, MPI.INT64_T], (rank + 1) % size)
window.Fence()
assert got.tolist() == [*range(size)]
for i in range(10):
    window.Lock(0, MPI.LOCK_SHARED)
    window.Fetch_and_op([array("q", [1]), MPI.INT64_T], [got, 1, MPI.INT64_T], 0, size, MPI.SUM)
    window.Unlock(0)
world.Barrier()
if rank == 0:
    window.Lock(0, MPI.LOCK_SHARED)
    assert memory[size] == 10 * size - 1
    window.Unlock(0)
window.Free()
if rank == 0:
    print("all of", size, "ranks agree")
