// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/ud"
)

// session is a program's connection to the service. It lasts until the program closes it, or the
// service or its device ends.
type session struct {
	*ud.Endpoint
	client  *client.Client
	verbs   *verbs.Context
	program *program
	numbers map[ud.Addr]uint64 // of the last message, by destination
	closed  atomic.Bool        // by the program
	readers sync.WaitGroup
}

// dial opens a device, joins the common group, and starts to receive.
func (p *program) dial() (*session, error) {
	c, err := client.Dial(p.socket, "eth0")
	if err != nil {
		return nil, err
	}
	v, err := verbs.Open(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	e, err := ud.New(v, ud.Options{RecvDepth: 1024, MaxMessage: 1024})
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	s := &session{Endpoint: e, client: c, verbs: v, program: p, numbers: map[ud.Addr]uint64{}}
	if err := e.Join(commonGroup); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.readers.Go(s.receive)
	s.readers.Go(s.readEvents)
	return s, nil
}

// close ends the session. It returns no error if the session has ended already.
func (s *session) close() error {
	s.closed.Store(true)
	_ = s.Endpoint.Close() // closing the context returns the relevant errors
	err := s.verbs.Close()
	s.readers.Wait()
	return err
}

// receive checks arriving messages until the session ends.
func (s *session) receive() {
	c := checker{own: s.LocalAddr().QPN, last: map[flow]uint64{}}
	for {
		m, err := s.Recv(context.Background())
		if err != nil {
			if !s.ends() {
				s.program.fault(fmt.Errorf("receive: %w", err))
			}
			return
		}
		h, err := c.check(&m)
		switch {
		case err == nil:
			s.program.count(h.Round)
		case !s.ends(): // the message's memory is freed with the session
			s.program.fault(err)
		}
		m.Release()
	}
}

// readEvents reads events until the session ends. It reports a fault if the session ended without a fatal event, except
// if the program has closed it.
func (s *session) readEvents() {
	fatal := false
	for {
		report, err := s.verbs.GetAsyncEvent(context.Background())
		if err != nil {
			if !s.isOver(err) || !fatal && !s.closed.Load() {
				s.program.fault(fmt.Errorf("events ended, with a fatal one: %t: %w", fatal, err))
			}
			return
		}
		fatal = fatal || report.Type == verbs.EventDeviceFatal
	}
}

// ends reports whether the session is ending. Its requests have been flushed then.
func (s *session) ends() bool {
	select {
	case <-s.client.Done():
		return true
	case <-time.After(patience):
		return s.closed.Load()
	}
}

// isOver reports whether err means that the session has ended.
func (s *session) isOver(err error) bool {
	return errors.Is(err, verbs.ErrDeviceFatal) || s.closed.Load() && (errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrObjectClosed))
}

// send sends count messages of length bytes to a destination.
func (s *session) send(ctx context.Context, to ud.Addr, round uint32, count, length int) error {
	messages, from := make([]ud.Message, count), s.LocalAddr().QPN // LocalAddr is called once, because it may call the service
	for i := range messages {
		h := head{
			Program: s.program.id, PID: uint32(os.Getpid()), From: from, Round: round,
			To: to.GID, ToQPN: to.QPN, Number: s.numbers[to] + uint64(i) + 1,
		}
		messages[i] = ud.Message{To: to, Data: h.encode(length)}
	}
	s.numbers[to] += uint64(count)
	_, err := s.SendBatch(ctx, messages)
	return err
}
