// SPDX-License-Identifier: Apache-2.0

// Package dcqcn implements the congestion control of RDMA NICs (Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015): a connection reduces its rate when its peer notifies it of congestion, and recovers.
//
//	switch marks ─► Notifier (at the receiver) ─► CNP ─► Flow (at the sender) ─► time of the next packet
//	   CE             one CNP per 50 µs                  rate, target, alpha
//
// Each queue pair has a Notifier and a Flow. They have a fixed size and allocate no memory. They have no timers: the
// current time is a parameter, and a Flow first applies the changes that were due since the last call. A Flow without a
// rate limit costs one branch per packet.
//
// Marking of packets and the format and checks of CNPs are in package datapath.
package dcqcn
