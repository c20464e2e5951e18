package network

import "net/netip"

// NoSteering is the Steering of a network that hands all packets to the engine.
type NoSteering struct{}

// The methods implement Steering.
func (NoSteering) AddQP(uint32) error               { return nil }
func (NoSteering) RemoveQP(uint32) error            { return nil }
func (NoSteering) AddAddress(netip.Addr) error      { return nil }
func (NoSteering) RemoveAddress(netip.Addr) error   { return nil }
func (NoSteering) AddBroadcast(netip.Addr) error    { return nil }
func (NoSteering) RemoveBroadcast(netip.Addr) error { return nil }
func (NoSteering) SetMACs(...[6]byte) error         { return nil }
func (NoSteering) AddGroup(netip.Addr) error        { return nil }
func (NoSteering) RemoveGroup(netip.Addr) error     { return nil }
