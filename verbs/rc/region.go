package rc

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Region is memory that peers may use, and that requests send from, or read into, without a copy.
type Region struct {
	domain *Domain
	mr     *verbs.MR
	closed atomic.Bool
}

// NewRegion makes length bytes of zeroed memory. access is what peers may do with it: verbs.AccessRemoteRead,
// AccessRemoteWrite, AccessRemoteAtomic, or 0. It is closed with the domain, unless Close does so before.
func (d *Domain) NewRegion(length int, access verbs.AccessFlags) (*Region, error) {
	if d == nil {
		return nil, fmt.Errorf("new region: %w", errNil)
	}
	if length > math.MaxUint32 {
		return nil, fmt.Errorf("new region: %w: %d bytes, and a RemoteRegion has at most 4 GiB", verbs.ErrInvalid, length)
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

// NewRegion makes a region of the connection's domain. It is freed by its Close, or with the domain: if that is the
// connection's own by the connection's Close, and for a connection that a listener has accepted when the listener and
// all that it has accepted are closed.
func (c *Conn) NewRegion(length int, access verbs.AccessFlags) (*Region, error) {
	if c == nil {
		return nil, fmt.Errorf("new region: %w", errNil)
	}
	return c.domain.NewRegion(length, access)
}

// Bytes is the region's memory. Peers may read and write it at any time; what a request of this side names
// belongs to the card until the request is done.
func (r *Region) Bytes() []byte {
	if r == nil {
		return nil
	}
	return r.mr.Bytes()
}

// Len is the region's length in bytes.
func (r *Region) Len() int { return len(r.Bytes()) }

// Remote is the handle by which peers name the region.
func (r *Region) Remote() RemoteRegion {
	if r == nil {
		return RemoteRegion{}
	}
	return RemoteRegion{Addr: r.mr.IOVA(), Length: uint32(r.Len()), Key: r.mr.RKey()}
}

// Close frees the region: a peer's request that names it is refused from then on, which ends that connection.
// Closing again does nothing.
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
