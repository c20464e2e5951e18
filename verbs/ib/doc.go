// SPDX-License-Identifier: Apache-2.0

// Package ib defines the values, masks and attributes of libibverbs and of the kernel's ib_verbs.h, by their names
// there. IBV_WC_SUCCESS and IB_WC_SUCCESS are WCSuccess, ib_port_attr is PortAttr, and IB_RATE_100_GBPS is Rate100Gbps.
// Numbers have the values of libibverbs and print as its functions do.
//
//	datapath/wire ← ib ← datapath/ring ← verbs/provider ← verbs ← verbs/hca, verbs/client, verbs/server
//
// Package verbs has aliases of the common names, and verbs/kernel of those of kernel protocols. Programs need this
// package for the rest: rates, capabilities of devices and ports, and values that a RoCE card never has. The layers
// below verbs use it because queue entries and commands contain these types.
//
// All numbers are defined once, in numbers.txt, from which numbers.go, the aliases in other packages and the
// enumerations for C are generated.
//
// Out of scope: objects and calls (package verbs), headers and addresses (package datapath/wire).
package ib

//go:generate go run ../../hack/numbers
