// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Region is memory that peers can access, and that requests send from or read into without a copy.
type Region struct {
	domain *Domain
	mr     *verbs.MR
	closed atomic.Bool
}

// NewRegion allocates a region of length bytes of zeroed memory. access is the access that peers have: any of
// verbs.AccessRemoteRead, AccessRemoteWrite and AccessRemoteAtomic, or 0. The region is freed by its Close, or with the
// domain.
func (d *Domain) NewRegion(length int, access verbs.AccessFlags) (*Region, error) {
	if d == nil {
		return nil, fmt.Errorf("new region: %w", errNil)
	}
	if length > math.MaxUint32 {
		return nil, fmt.Errorf("new region: %w: %d bytes exceed the maximum of a RemoteRegion, 4 GiB", verbs.ErrInvalid, length)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("new region: %w: the domain", verbs.ErrObjectClosed)
	}
	mr, err := d.pd.AllocMR(length, access|verbs.AccessLocalWrite)
	if err != nil {
		return nil, fmt.Errorf("new region: %w", err)
	}
	r := &Region{domain: d, mr: mr}
	d.regions[r] = true
	return r, nil
}

// NewRegion allocates a region of the connection's domain; see Domain.NewRegion. A private domain is freed by the
// connection's Close. The private domain of a listener is freed when the listener and all connections that it has
// accepted are closed.
func (c *Conn) NewRegion(length int, access verbs.AccessFlags) (*Region, error) {
	if c == nil {
		return nil, fmt.Errorf("new region: %w", errNil)
	}
	return c.domain.NewRegion(length, access)
}

// Bytes returns the region's memory. Peers may read and write it at any time. The part that a request of this end uses
// must not be changed until the request has completed.
func (r *Region) Bytes() []byte {
	if r == nil {
		return nil
	}
	return r.mr.Bytes()
}

// Len returns the region's length in bytes.
func (r *Region) Len() int { return len(r.Bytes()) }

// Remote returns the handle with which peers address the region.
func (r *Region) Remote() RemoteRegion {
	if r == nil {
		return RemoteRegion{}
	}
	return RemoteRegion{Addr: r.mr.IOVA(), Length: uint32(r.Len()), Key: r.mr.RKey()}
}

// Close frees the region. A later request of a peer that uses it is refused, which ends that connection. Closing again
// has no effect.
func (r *Region) Close() error {
	if r == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	d := r.domain
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.regions[r] {
		return nil
	}
	delete(d.regions, r)
	r.closed.Store(true)
	return transport.Free(r.mr)
}
