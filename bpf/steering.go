package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf/link"
)

// MaxRings is how many receive queues a device can have: rings 0 to MaxRings-1.
const MaxRings = 64

// maxVLAN is the highest VLAN there is; 4095 is reserved (IEEE 802.1Q, table 9-2).
const maxVLAN = 4094

// Config fixes what cannot change once the program is loaded.
type Config struct {
	// VLAN of the device: packets must carry exactly this tag. 0: they must carry
	// none, not even a priority tag.
	VLAN uint16
}

// Steering is one loaded steering program with its tables. Its methods may be
// called from several goroutines, Close once the others are done.
type Steering struct {
	objs steerObjects
	vlan uint16

	mu         sync.Mutex // guards what follows
	own        map[netip.Addr]bool
	first      [2]netip.Addr // by version: what is in first_addresses
	ownTails   bitmap
	queuePairs bitmap
	link       link.Link // nil: not attached
	mode       Mode
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
	s := &Steering{vlan: config.VLAN, own: make(map[netip.Addr]bool)}
	if err := s.load(); err != nil {
		return nil, explainLoad(err)
	}
	s.ownTails = newBitmap(s.objs.OwnTails)
	s.queuePairs = newBitmap(s.objs.QueuePairs)
	return s, nil
}

func (s *Steering) load() error {
	spec, err := loadSteer()
	if err != nil {
		return err
	}
	if err := spec.Variables[steerVarDeviceVlan].Set(s.vlan); err != nil {
		return err
	}
	return spec.LoadAndAssign(&s.objs, nil)
}

// Close detaches the program and frees the tables. If the process dies instead, the
// kernel does the same.
func (s *Steering) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.detach(), s.objs.Close())
}
