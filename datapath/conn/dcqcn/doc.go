// SPDX-License-Identifier: Apache-2.0

// Package dcqcn implements the congestion control of RDMA NICs (Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015): a connection reduces its rate when its peer notifies it of congestion, and recovers.
//
//	switch marks ─► Notifier (the receiver) ─► CNP ─► Flow (the sender) ─► when the next packet may leave
//	   CE             one every 50 µs                  rate, target, alpha
//
// Both belong to a queue pair, have a fixed size and allocate nothing. They have no timers: the current time is a
// parameter, and a Flow first applies the changes that were due since the last call. The cost per packet of a Flow
// without a rate limit is one branch.
//
// Marking of packets and the format and checks of CNPs are in package datapath.
package dcqcn
