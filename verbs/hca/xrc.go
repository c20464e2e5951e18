// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// domain is an XRC domain of a card. Sessions of one user share it by an inode. It exists while one of them has a
// handle of it.
type domain struct {
	key     *domainKey        // nil: it belongs to one session
	entry   *datapath.Domain  // the engine's part of it
	session *datapath.Session // session of its targets; no program's
	pd      pd                // PD of its targets
	handles int
	targets map[wire.QPN]*qp
	free    []uint32 // free places (DoorbellIndex in session) of destroyed targets
}

// place returns the place of the next target. The places in use and the free ones are those below their total number.
func (d *domain) place() uint32 {
	if last := len(d.free) - 1; last >= 0 {
		return d.free[last]
	}
	return uint32(len(d.targets))
}

// add adds a target at the next place.
func (d *domain) add(q *qp) {
	d.targets[q.entry.Number] = q
	d.free = d.free[:max(len(d.free)-1, 0)]
}

func (d *domain) remove(q *qp) {
	delete(d.targets, q.entry.Number)
	d.free = append(d.free, q.entry.DoorbellIndex)
}

// domains holds the XRC domains of a card that are named by an inode. The card's lock protects it.
type domains struct{ byKey map[domainKey]*domain }

// domainKey has the sharer of a domain, and the inode that names it. The birth time distinguishes an inode from a later
// one with the same number, so no descriptor is kept open.
type domainKey struct {
	sharer any
	inode
}

type inode struct {
	major, minor uint32
	number       uint64
	born         unix.StatxTimestamp
}

// xrcd is a session's handle of a domain, with the number of SRQs and queue pairs created with it.
type xrcd struct {
	domain *domain
	users  int
}

// xrcds holds a session's handles of XRC domains.
type xrcds struct {
	handles.Table[xrcd]
	owner   *owner
	domains *domains
}

// errNoDomain has EAGAIN first, the errno for C, as in the kernel.
var errNoDomain = errno.Kin("the inode has no XRC domain; create one (O_CREAT)", unix.EAGAIN, verbs.ErrInvalid)

// inodeOf returns the inode of an open file. It requests no update from the file system, which may be slow to respond.
func inodeOf(file syscall.Conn) (i inode, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return i, fmt.Errorf("%w: the file of an XRC domain: %w", verbs.ErrInvalid, err)
	}
	var failed error
	if err = raw.Control(func(fd uintptr) { i, failed = statInode(int(fd)) }); err != nil {
		return i, fmt.Errorf("%w: the file of an XRC domain: %w", verbs.ErrInvalid, err)
	}
	return i, failed
}

func statInode(fd int) (i inode, err error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return i, fmt.Errorf("%w: the file of an XRC domain: %w", verbs.ErrInvalid, err)
	}
	if flags&unix.O_PATH != 0 { // such a descriptor needs no permission to the file
		return i, fmt.Errorf("%w: %w: the file of an XRC domain was opened with O_PATH; open it for reading or writing", verbs.ErrInvalid, unix.EBADF)
	}
	var s unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return i, fmt.Errorf("%w: the inode of an XRC domain: %w", verbs.ErrHost, err)
	}
	return inode{s.Dev_major, s.Dev_minor, s.Ino, s.Btime}, nil
}

// open carries out provider.OpenXRCD.
func (t *xrcds) open(r provider.OpenXRCDRequest) (grant provider.OpenXRCDGrant, err error) {
	var key *domainKey
	if r.File != nil {
		of, err := inodeOf(r.File)
		if err != nil {
			return grant, err
		}
		key = &domainKey{t.owner.config.Sharer, of}
	}
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	d, err := t.domains.obtain(key, &r, t.owner.entry)
	if err != nil {
		return grant, err
	}
	if grant.XRCD, err = t.Add(&xrcd{domain: d}); err != nil {
		return grant, err
	}
	t.domains.acquire(d)
	return grant, nil
}

// obtain returns the domain of a key, or a new one, for a session. All sessions of a domain have the same engine.
func (all *domains) obtain(key *domainKey, r *provider.OpenXRCDRequest, by *datapath.Session) (*domain, error) {
	if key != nil {
		switch d := all.byKey[*key]; {
		case d != nil && r.Exclusive:
			return nil, fmt.Errorf("%w: the inode has an XRC domain already, and the request is exclusive (O_EXCL)", verbs.ErrInvalid)
		case d != nil && d.session.Engine() != by.Engine():
			return nil, fmt.Errorf("%w: another worker of the card serves the XRC domain's programs; with one worker (--workers 1) programs can share it", verbs.ErrUnsupported)
		case d != nil:
			return d, nil
		case !r.Create:
			return nil, errNoDomain
		}
	}
	return &domain{
		key: key, entry: datapath.NewDomain(), session: by.Beside(ring.NewDoorbell(ring.Alloc(ring.DoorbellSize))),
		targets: map[wire.QPN]*qp{},
	}, nil
}

// close carries out provider.CloseXRCD.
func (t *xrcds) close(r provider.CloseXRCDRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	x, err := t.Get(r.XRCD)
	if err != nil {
		return err
	}
	if x.users > 0 {
		return fmt.Errorf("%w: the XRC domain has %d SRQs and queue pairs; close them first", verbs.ErrBusy, x.users)
	}
	t.Remove(r.XRCD)
	t.domains.drop(x.domain)
	return nil
}

// acquire counts a handle of a domain.
func (all *domains) acquire(d *domain) {
	if d.handles++; d.key != nil {
		all.byKey[*d.key] = d
	}
}

// drop closes a handle of a domain, and with the last handle destroys the domain.
func (all *domains) drop(d *domain) {
	if d.handles--; d.handles == 0 && d.key != nil {
		delete(all.byKey, *d.key)
	}
}

// leaveAll closes the session's handles of domains, at its end. The caller holds the card's lock.
func (t *xrcds) leaveAll() {
	for _, x := range t.All() {
		t.domains.drop(x.domain)
	}
}

// createXRC carries out provider.CreateXRCSRQ. Peers name SRQs of type XRC, which belong to a domain, by their numbers.
func (t *srqs) createXRC(r provider.CreateXRCSRQRequest) (grant provider.CreateXRCSRQGrant, err error) {
	basic := provider.CreateSRQRequest{PD: r.PD, Attr: r.Attr, EventID: r.EventID}
	grant.CreateSRQGrant, err = t.build(basic, func(q *srq) error {
		err := t.bindXRC(q, &r)
		grant.Number = q.entry.Number
		return err
	})
	if err != nil {
		return provider.CreateXRCSRQGrant{}, err
	}
	return grant, nil
}

// bindXRC finds the domain and the CQ of a queue, and assigns its number. The caller holds the card's lock.
func (t *srqs) bindXRC(q *srq, r *provider.CreateXRCSRQRequest) (err error) {
	if q.xrcd, err = t.xrcds.Get(r.XRCD); err != nil {
		return err
	}
	if q.cq, err = t.cqs.Get(r.CQ); err != nil {
		return err
	}
	overrun := false
	t.owner.engine().Do(func() { overrun = q.cq.entry.Overrun() })
	if overrun {
		return fmt.Errorf("%w: the CQ of the SRQ, whose receives therefore cannot complete; make another CQ", verbs.ErrCQOverrun)
	}
	all := t.numbers.Len()
	if all == maxSRQ {
		return fmt.Errorf("%w: the sessions of this card have %d SRQs of type XRC together, the maximum; destroy some", verbs.ErrLimit, maxSRQ)
	}
	if err := t.owner.config.Quota.Admit(quota.SRQs, quota.Shared{Noun: "SRQs of type XRC of the card", Used: uint64(all), Most: maxSRQ}); err != nil {
		return err
	}
	q.entry.Number = wire.SRQN(t.numbers.Draw())
	q.entry.CQ, q.entry.CompletionToken = q.cq.entry, r.CompletionToken
	return nil
}

// showXRC lets peers of the domain's targets name the queue. The caller holds the card's lock.
func (t *srqs) showXRC(q *srq) {
	t.numbers.Add(wire.QPN(q.entry.Number), q)
	q.xrcd.users++
	q.cq.users++
	t.owner.engine().Do(func() { q.xrcd.domain.entry.AddSRQ(q.entry) })
}

// hideXRC undoes showXRC.
func (t *srqs) hideXRC(q *srq) {
	t.owner.engine().Do(func() { q.xrcd.domain.entry.RemoveSRQ(q.entry) })
	t.numbers.Remove(wire.QPN(q.entry.Number))
	q.xrcd.users--
	q.cq.users--
}

// withdrawXRC removes the session's XRC SRQs from their domains, at its end. The caller holds the card's lock.
func (t *srqs) withdrawXRC() {
	of := slices.DeleteFunc(t.All(), func(q *srq) bool { return q.xrcd == nil })
	t.owner.engine().Do(func() {
		for _, q := range of {
			q.xrcd.domain.entry.RemoveSRQ(q.entry)
		}
	})
	for _, q := range of {
		t.numbers.Remove(wire.QPN(q.entry.Number))
	}
}
