// Package dcqcn is the congestion control of RDMA cards (Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015): how a connection is slowed down by the notifications of its peer, and recovers.
//
//	switch marks ─► Notifier (the receiver) ─► CNP ─► Flow (the sender) ─► when the next packet may leave
//	   CE             one every 50 µs                  rate, target, alpha
//
// Both are values of a queue pair: bounded, and they allocate nothing. Time is a parameter. Nothing is timed here:
// what would have happened meanwhile is caught up with when a Flow is asked or told something. A Flow that nobody
// has slowed down costs one look at a flag a packet.
//
// Left out: which packets are marked, what a CNP looks like, and who may send one (datapath).
package dcqcn
