# Messages to and fro between ranks 0 and 1, and a collective of all.
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
if rank == 0:
    print("all of", size, "ranks agree")
