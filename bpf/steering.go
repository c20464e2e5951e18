package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// maxRings is how many receive queues a device can have at most.
const maxRings = 4096

// maxVLAN is the highest VLAN there is; 4095 is reserved (IEEE 802.1Q, table 9-2).
const maxVLAN = 4094

// Config fixes what cannot change once the program is loaded.
type Config struct {
	// VLAN of the device: packets must carry exactly this tag. 0: they must carry
	// none. A priority tag (VLAN 0) before it is skipped, as Linux does.
	VLAN uint16
	// Queues is how many receive queues the interface has, 1 to maxRings: SetRing
	// takes 0 to Queues-1. 0: 1.
	Queues int
	// AnyMAC takes unicast frames whatever their MAC, as a bond must: its slaves have others.
	AnyMAC bool
}

// Steering is one loaded steering program with its tables. Its methods may be
// called from several goroutines, Close once the others are done.
type Steering struct {
	objs steerObjects
	vlan uint16

	redirect redirectCounter

	mu         sync.Mutex           // guards what follows
	roles      map[netip.Addr]roles // what is in own_addresses
	tails      map[uint32]int       // how many of them end so
	first      [2]netip.Addr        // by version: what is in first_addresses
	ownTails   bitmap
	queuePairs bitmap
	link       link.Link // nil: not attached
	mode       Mode
	program    ebpf.ProgramID // that was attached
	fallback   error
}

// Load loads the program and makes its tables, empty: until addresses are added
// everything passes.
//
// It needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and no limit on locked memory. A
// kernel as new as 6.18 takes the program without CAP_PERFMON, but adds barriers
// against speculation that double what a packet costs. When a capability is missing
// the error is ErrPermission and names it.
func Load(config Config) (*Steering, error) {
	if config.VLAN > maxVLAN {
		return nil, fmt.Errorf("load the steering program: VLAN %d: %w", config.VLAN, ErrInvalid)
	}
	if config.Queues < 0 || config.Queues > maxRings {
		return nil, fmt.Errorf("load the steering program: %d queues: %w: at most %d", config.Queues, ErrInvalid, maxRings)
	}
	s := &Steering{vlan: config.VLAN, roles: make(map[netip.Addr]roles), tails: make(map[uint32]int)}
	if err := s.load(config); err != nil {
		return nil, explainLoad(err)
	}
	s.ownTails = newBitmap(s.objs.OwnTails)
	s.queuePairs = newBitmap(s.objs.QueuePairs)
	s.redirect.start(&s.objs)
	return s, nil
}

func (s *Steering) load(config Config) error {
	spec, err := loadSteer()
	if err != nil {
		return err
	}
	if err := spec.Variables[steerVarDeviceVlan].Set(config.VLAN); err != nil {
		return err
	}
	if err := spec.Variables[steerVarAnyMac].Set(config.AnyMAC); err != nil {
		return err
	}
	spec.Maps[steerMapRings].MaxEntries = uint32(max(config.Queues, 1))
	return spec.LoadAndAssign(&s.objs, nil)
}

// Close detaches the program and frees the tables. If the process dies instead, the
// kernel does the same.
func (s *Steering) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.detach(), s.redirect.close(), s.objs.Close())
}
