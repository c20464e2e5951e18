package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// The commands about memory of the program's own: its process file, and regions in it.

// shareMemory gives a session its process file: a new one, or the one that was passed.
func shareMemory(c *connection, m proto.Message) error {
	r, err := proto.ShareMemory.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	if c.file != nil {
		return c.fail(m, fmt.Errorf("%w: the session has its process file already", verbs.ErrBusy))
	}
	if err := c.server.barred.check(c.peer.holder(), time.Now()); err != nil {
		return c.fail(m, err)
	}
	if c.file, err = c.findFile(&r); err != nil {
		return c.fail(m, err)
	}
	file := c.file
	c.background.Go(func() { c.watchFile(file, nil) })
	return reply(c, proto.ShareMemory.Untyped, m.ID, &proto.SharedMemory{Size: file.space}, c.file.fd)
}

func (c *connection) findFile(r *proto.ShareMemoryRequest) (*processFile, error) {
	if !r.HasFile {
		return c.server.files.open(c.peer.sharer(), c.account.quota, r.Size)
	}
	files, err := c.fileSocket.take()
	defer c.fileSocket.close(files...)
	if err != nil {
		return nil, err
	}
	return c.server.files.join(c.peer.sharer(), files[0])
}

// mapping maps a part of the session's process file.
func (c *connection) mapping(offset uint64, length int) func() (hca.Mapping, error) {
	return func() (hca.Mapping, error) {
		if c.file == nil {
			return hca.Mapping{}, fmt.Errorf("%w: the session shares no memory; ask share_memory first", verbs.ErrInvalid)
		}
		return c.file.mapRegion(offset, length)
	}
}

// memoryPlace has a command map a part of memory of the program's own.
type memoryPlace func(c *connection, offset uint64, length int, do func(mapped func() (hca.Mapping, error)) error) error

// inProcessFile is a place in the session's process file.
func inProcessFile(c *connection, offset uint64, length int, do func(mapped func() (hca.Mapping, error)) error) error {
	return do(c.mapping(offset, length))
}

// registers returns the handler of a command that registers a part of a file.
func registers(command proto.Command[proto.RegMRRequest, provider.MRGrant], in memoryPlace) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		r, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		var grant provider.MRGrant
		err = in(c, r.Offset, r.Length, func(mapped func() (hca.Mapping, error)) (err error) {
			request := provider.AllocMRRequest{PD: r.PD, Length: r.Length, Access: r.Access, IOVA: r.IOVA}
			grant, err = c.session.RegMapped(request, mapped)
			return err
		})
		return answer(c, command.Untyped, m, &grant, err)
	}}
}

// reregisters returns the handler of a command that changes a region to a part of a file.
func reregisters(command proto.Command[proto.ReregMRMemoryRequest, proto.None], in memoryPlace) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		r, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		err = in(c, r.Offset, r.Length, func(mapped func() (hca.Mapping, error)) error {
			request := provider.ReregMRRequest{MR: r.MR, Flags: r.Flags, PD: r.PD, IOVA: r.IOVA, Access: r.Access}
			return c.session.ReregMapped(request, r.Length, mapped)
		})
		return answer(c, command.Untyped, m, &proto.None{}, err)
	}}
}

// barred are users whose programs had the card wait, or could have: they have taken pages out of memory that the card uses,
// or had too many. For a while they share no memory, or open no sessions.
type barred struct {
	why string // what a program of the user has done, and what its programs can do again later

	mu    sync.Mutex
	until map[holder]time.Time
}

const (
	whyNoMemory   = "has taken pages out of memory that it had registered, or its files were too large; its programs can register memory of their own again"
	whyNoSessions = "has taken pages out of its session's memory; the user's programs can open devices again"
)

// barredFor is how long.
const barredFor = time.Minute

// add bars a user, and says whether it was barred already.
func (b *barred) add(user holder, now time.Time) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, until := range b.until {
		if until.Before(now) {
			delete(b.until, other)
		}
	}
	if b.until == nil {
		b.until = map[holder]time.Time{}
	}
	_, again = b.until[user]
	b.until[user] = now.Add(barredFor)
	return again
}

func (b *barred) check(user holder, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.until[user].Sub(now); left > 0 {
		return fmt.Errorf("%w: a program of %v %s in %v", verbs.ErrPermission, user, b.why, left.Round(time.Second))
	}
	return nil
}
