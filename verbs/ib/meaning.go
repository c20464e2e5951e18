// SPDX-License-Identifier: Apache-2.0

package ib

import "github.com/roced/roced/datapath/wire"

// request is the meaning of a send request's opcode.
type request struct {
	means     wire.Meaning // of its packets; 0 for a local operation without packets
	completes WCOpcode
	services  uint8 // that support it, a bit each
}

// requests has an entry for each value that a program can write. Invalid opcodes have no service.
var requests = withServices([1 << 8]request{
	WRRDMAWrite:         {means: wire.MeansWrite, completes: WCRDMAWrite},
	WRRDMAWriteWithImm:  {means: wire.MeansWrite | wire.MeansImmediate, completes: WCRDMAWrite},
	WRSend:              {means: wire.MeansSend, completes: WCSend},
	WRSendWithImm:       {means: wire.MeansSend | wire.MeansImmediate, completes: WCSend},
	WRRDMARead:          {means: wire.MeansRead, completes: WCRDMARead},
	WRAtomicCmpAndSwp:   {means: wire.MeansCompareSwap, completes: WCCompSwap},
	WRAtomicFetchAndAdd: {means: wire.MeansFetchAdd, completes: WCFetchAdd},
	WRLocalInv:          {completes: WCLocalInv, services: localServices},
	WRBindMW:            {completes: WCBindMW, services: localServices},
	WRRegMR:             {completes: WCRegMR, services: localServices},
	WRRegMRIntegrity:    {completes: WCRegMR, services: localServices},
	WRSendWithInv:       {means: wire.MeansSend | wire.MeansInvalidate, completes: WCSend},
})

// localServices are the services in which a program can bind and invalidate its own windows: the connected ones.
const localServices = 1<<wire.ServiceRC | 1<<wire.ServiceUC | 1<<wire.ServiceXRC

// withServices adds the services that support an operation: those that have the packets (IBA tables 38 and 97).
func withServices(table [1 << 8]request) [1 << 8]request {
	for i := range table {
		r := &table[i]
		if r.means == 0 {
			continue
		}
		sequence := wire.SequenceOf(r.means)
		for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceUD, wire.ServiceXRC} {
			if _, ok := service.Of(sequence.At(0, 1, 1)).Headers(); ok {
				r.services |= 1 << service
			}
		}
	}
	return table
}

// Means returns the meaning of the request's packets; 0 if it has none.
func (o Opcode) Means() wire.Meaning { return requests[o].means }

// Local reports whether the request is a local operation without packets.
func (o Opcode) Local() bool { return requests[o].means == 0 && requests[o].services != 0 }

// Completes returns the opcode of the request's completion. The completion of an invalid opcode has an error status,
// and its opcode is not significant.
func (o Opcode) Completes() WCOpcode { return requests[o].completes }

// On reports whether a service supports the operation: RC, UC, UD or XRC.
func (o Opcode) On(s wire.Service) bool { return requests[o].services&(1<<s) != 0 }

// IsRecv reports whether the completed request was a receive, for any operation of the peer.
func (o WCOpcode) IsRecv() bool { return o&WCRecv != 0 }

// Receives reports whether a queue pair in this state receives packets.
func (s QPState) Receives() bool { return s >= QPStateRTR && s <= QPStateSQE }
