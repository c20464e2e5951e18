// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// maxRings is the maximum number of receive queues of an interface.
const maxRings = 4096

// maxVLAN is the highest valid VLAN. 4095 is reserved (IEEE 802.1Q, table 9-2).
const maxVLAN = 4094

// Config contains the settings that cannot change after the program is loaded.
type Config struct {
	// VLAN is the VLAN of the card. Packets must have exactly this tag, or none if it is 0. A priority tag (VLAN 0)
	// before it is skipped, as in Linux.
	VLAN uint16
	// Queues is the maximum number of receive queues of the interface, 1 to 4096. 0 means 1. SetRing accepts 0 to
	// Queues-1.
	Queues int
	// Renewable loads a copy of the program, which Renew requires.
	Renewable bool
	// AnyMAC accepts unicast frames to any MAC. Bonds require it, since their slaves may have other MACs.
	AnyMAC bool
}

// Steering is a loaded steering program with its tables. Its methods can be called concurrently, except Close, which
// must be called after all other calls have returned.
type Steering struct {
	objs steerObjects
	vlan uint16

	redirect redirectCounter

	mu         sync.Mutex           // guards the fields below
	roles      map[netip.Addr]roles // a copy of own_addresses
	tails      map[uint32]int       // number of addresses in roles with each tail
	first      [2]netip.Addr        // a copy of first_addresses, by version
	ownTails   bitmap
	queuePairs bitmap
	link       link.Link // nil if not attached
	mode       Mode
	program    ebpf.ProgramID // the attached program
	spare      *ebpf.Program  // a copy of the attached one; nil unless Renewable
	fallback   error          // see Fallback
}

// Load loads the program and creates its tables, which are empty. All packets pass until addresses are added.
//
// Load requires CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, but no higher limit on locked memory. Linux 6.18 loads the
// program without CAP_PERFMON too, but adds barriers against speculation that double the cost per packet. If a
// capability is missing, Load returns ErrPermission with its name.
func Load(config Config) (*Steering, error) {
	if config.VLAN > maxVLAN {
		return nil, fmt.Errorf("load the steering program: VLAN %d: %w", config.VLAN, ErrInvalid)
	}
	if config.Queues < 0 || config.Queues > maxRings {
		return nil, fmt.Errorf("load the steering program: %d queues: %w: at most %d", config.Queues, ErrInvalid, maxRings)
	}
	if err := checkDescriptors(); err != nil {
		return nil, fmt.Errorf("load the steering program: %w", err)
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
	if !config.Renewable {
		return spec.LoadAndAssign(&s.objs, nil)
	}
	spec.Programs[spareProgram] = spec.Programs[steerProgRocedSteer].Copy()
	var objs struct {
		steerObjects
		Spare *ebpf.Program `ebpf:"roced_spare"`
	}
	err = spec.LoadAndAssign(&objs, nil)
	s.objs, s.spare = objs.steerObjects, objs.Spare
	return err
}

// spareProgram is the name of the second copy of the program in the collection.
const spareProgram = "roced_spare"

// Close detaches the program and frees the tables. The kernel does the same if the process ends.
func (s *Steering) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.detach(), s.redirect.close(), s.objs.Close(), s.spare.Close())
}
