// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// startWild makes random calls until stopWild.
func (p *program) startWild(seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(p.id)))
	p.calm = make(chan struct{})
	rare := []func(*rand.Rand) error{p.sendToNobody, p.joinAndLeave, p.makeObjects, p.exhaustQPs, p.exhaustMemory, p.redial}
	p.wild.Go(func() {
		for !isClosed(p.calm) {
			err := p.connect()
			if err == nil {
				err = p.expected(p.step(r, rare))
			}
			if err != nil {
				p.fault(err)
			}
			time.Sleep(breath())
		}
	})
}

// breath is the time between two steps; 0 in "make chaos". Otherwise ten programs would keep all processors busy,
// which other packages' tests need.
func breath() time.Duration {
	if os.Getenv(chaosVariable) != "" || waittest.AllRounds() {
		return 0
	}
	return 2 * time.Millisecond
}

// step makes one random call, usually a send.
func (p *program) step(r *rand.Rand, rare []func(*rand.Rand) error) error {
	switch n := r.IntN(100); {
	case n < len(rare):
		return rare[n](r)
	case n < 30:
		return p.sendToGroup(r)
	}
	return p.sendToOthers(r)
}

// stopWild ends the random calls.
func (p *program) stopWild() {
	if p.calm != nil {
		close(p.calm)
		p.wild.Wait()
		p.calm = nil
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// expected returns nil for errors that are normal on a changing host, otherwise err. The end of the session is such an
// error: the next step opens another session.
func (p *program) expected(err error) error {
	for _, usual := range []error{
		verbs.ErrDeviceFatal, verbs.ErrUnreachable, verbs.ErrNoGID, verbs.ErrLimit, context.DeadlineExceeded, ud.ErrTooLong,
		unix.ENODEV, unix.ENETDOWN, // until the device has detected the change
	} {
		if errors.Is(err, usual) {
			return nil
		}
	}
	if errors.As(err, new(*ud.SendError)) { // longer than an MTU that has just changed
		return nil
	}
	return err
}

// moment is the time that a step waits for an uncertain event.
const moment = 50 * time.Millisecond

func (p *program) sendTo(r *rand.Rand, to ud.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	err := p.session.send(ctx, to, 0, 1+r.IntN(2*burst), headLength+r.IntN(1024-headLength))
	if errors.Is(err, verbs.ErrInvalid) { // the source address of this IP version is missing at the moment
		return nil
	}
	return err
}

// sendToOthers sends to addresses that programs have published. Their owners may no longer exist.
func (p *program) sendToOthers(r *rand.Rand) error {
	names, err := filepath.Glob(filepath.Join(p.folder, "*"))
	if err != nil || len(names) == 0 {
		return err
	}
	text, err := os.ReadFile(names[r.IntN(len(names))])
	if err != nil {
		return nil // an incomplete file has been renamed
	}
	to, err := ud.ParseAddr(string(text))
	if err != nil {
		return nil // not complete yet
	}
	return p.sendTo(r, to)
}

func (p *program) sendToGroup(r *rand.Rand) error { return p.sendTo(r, ud.Group(commonGroup)) }

func (p *program) sendToNobody(r *rand.Rand) error {
	nobody := verbs.GIDFromAddr(netip.AddrFrom4([4]byte{10, 77, 0, byte(100 + r.IntN(100))}))
	return p.sendTo(r, ud.Addr{GID: nobody, QPN: 7, QKey: verbs.UDPQKey})
}

func (p *program) joinAndLeave(r *rand.Rand) error {
	group := netip.AddrFrom4([4]byte{239, 77, 1, byte(r.IntN(8))})
	if err := p.session.Join(group); err != nil {
		return err
	}
	if r.IntN(4) == 0 {
		return nil // the end of the session leaves the group
	}
	pause(r, moment/10)
	return p.session.Leave(group)
}

// makeObjects creates one object of each kind, posts requests, and frees the objects.
func (p *program) makeObjects(r *rand.Rand) (err error) {
	v := p.session.verbs
	pd, err := v.AllocPD()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pd.Close()) }()
	mr, err := pd.AllocMR(1+r.IntN(1<<18), verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mr.Close()) }()
	if at := firstNonZero(mr.Bytes()); at >= 0 {
		return fmt.Errorf("new memory is not zero at byte %d of %d", at, len(mr.Bytes()))
	}
	for i := range mr.Bytes() {
		mr.Bytes()[i] = byte(p.id) + 1 // must never be visible to another program
	}
	return p.makeQueues(pd)
}

func firstNonZero(memory []byte) int {
	for i, b := range memory {
		if b != 0 {
			return i
		}
	}
	return -1
}

func (p *program) makeQueues(pd *verbs.PD) (err error) {
	cq, err := p.session.verbs.CreateCQ(64)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cq.Close()) }()
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, qp.Close()) }()
	if err := qp.Activate(verbs.UDPQKey); err != nil {
		return err
	}
	for id := range uint64(8) {
		if err := qp.PostRecv([]verbs.RecvWR{{ID: id}}); err != nil {
			return err
		}
	}
	return qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState)
}

// exhaustQPs creates queue pairs up to the limit, and frees them.
func (p *program) exhaustQPs(*rand.Rand) (err error) {
	pd, err := p.session.verbs.AllocPD()
	if err != nil {
		return err
	}
	cq, err := p.session.verbs.CreateCQ(8)
	if err != nil {
		return errors.Join(err, pd.Close())
	}
	var all []*verbs.QP
	for err == nil {
		var qp *verbs.QP
		if qp, err = pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq}); err == nil {
			all = append(all, qp)
		}
	}
	err = p.expected(err)
	for _, qp := range all {
		err = errors.Join(err, qp.Close())
	}
	return errors.Join(err, cq.Close(), pd.Close())
}

// exhaustMemory allocates memory up to the limit.
func (p *program) exhaustMemory(r *rand.Rand) (err error) {
	pd, err := p.session.verbs.AllocPD()
	if err != nil {
		return err
	}
	var all []*verbs.MR
	for err == nil {
		var mr *verbs.MR
		if mr, err = pd.AllocMR(1<<20+r.IntN(8<<20), verbs.AccessLocalWrite); err == nil {
			all = append(all, mr)
		}
	}
	err = p.expected(err)
	for _, mr := range all {
		err = errors.Join(err, mr.Close())
	}
	return errors.Join(err, pd.Close())
}

// redial closes the session during traffic, or opens a second one.
func (p *program) redial(r *rand.Rand) error {
	if r.IntN(2) == 0 {
		other, err := p.dial()
		if err != nil {
			return p.refused(err)
		}
		return other.close()
	}
	err := p.session.close()
	p.session = nil
	return err
}

// refused returns nil for errors of a service that does not run, has no device or has reached a limit, otherwise err.
func (p *program) refused(err error) error {
	if errors.Is(err, verbs.ErrHost) {
		return nil
	}
	return err
}
