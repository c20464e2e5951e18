// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"syscall"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// passFile hands the client's end of the file socket over.
func passFile(c *connection, m proto.Message) error {
	if _, err := proto.PassFile.DecodeRequest(m.Body); err != nil {
		return err
	}
	end, err := c.fileSocket.Open()
	if err != nil {
		return c.fail(m, err)
	}
	defer unix.Close(end)
	return c.reply(proto.PassFile.Untyped, m.ID, &proto.None{}, end)
}

// shareMemory assigns a process file to a session: a new one, or the one that was passed.
func shareMemory(c *connection, m proto.Message) error {
	r, err := proto.ShareMemory.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	if c.memory.HasFile() {
		return c.fail(m, fmt.Errorf("%w: the session has its process file already", verbs.ErrBusy))
	}
	if err := c.memory.MayShare(); err != nil {
		return c.fail(m, err)
	}
	fd, size, err := c.findFile(&r)
	if err != nil {
		return c.fail(m, err)
	}
	return c.reply(proto.ShareMemory.Untyped, m.ID, &proto.SharedMemory{Size: size}, fd)
}

func (c *connection) findFile(r *proto.ShareMemoryRequest) (fd int, size uint64, err error) {
	if !r.HasFile {
		fd, err = c.memory.CreateFile(r.Size)
		return fd, r.Size, err
	}
	files, err := c.fileSocket.Take()
	defer c.fileSocket.Close(files...)
	if err != nil {
		return -1, 0, err
	}
	return c.memory.JoinFile(files[0])
}

// fileKind calls do with the mapping of a part of the program's memory. Its process file and files that it passes are two
// kinds.
type fileKind func(c *connection, offset uint64, length int, do func(mapped func() (hca.Mapping, error)) error) error

// processFile maps a part of the session's process file.
func processFile(c *connection, offset uint64, length int, do func(mapped func() (hca.Mapping, error)) error) error {
	return do(c.memory.Mapping(offset, length))
}

// passedFile maps a part of the file that was passed, and closes that file.
func passedFile(c *connection, offset uint64, length int, do func(mapped func() (hca.Mapping, error)) error) error {
	files, err := c.fileSocket.Take()
	defer c.fileSocket.Close(files...)
	if err != nil {
		return err
	}
	if err := c.memory.MayShare(); err != nil {
		return err
	}
	return do(c.memory.PassedMapping(files[0], offset, length))
}

// registers returns the handler of a command that registers a part of a file.
func registers(command proto.Command[proto.RegMRRequest, provider.MRGrant], in fileKind) handler {
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
		return c.answer(command.Untyped, m, &grant, err)
	}}
}

// reregisters returns the handler of a command that changes a region to a part of a file.
func reregisters(command proto.Command[proto.ReregMRMemoryRequest, proto.None], in fileKind) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		r, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		err = in(c, r.Offset, r.Length, func(mapped func() (hca.Mapping, error)) error {
			request := provider.ReregMRRequest{MR: r.MR, Flags: r.Flags, PD: r.PD, IOVA: r.IOVA, Access: r.Access}
			return c.session.ReregMapped(request, r.Length, mapped)
		})
		return c.answer(command.Untyped, m, &proto.None{}, err)
	}}
}

// openXRCD opens an XRC domain: that of the file that was passed, if the request has one.
func openXRCD(c *connection, m proto.Message) error {
	r, err := proto.OpenXRCD.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	request := provider.OpenXRCDRequest{Create: r.Create, Exclusive: r.Exclusive}
	if r.HasFile {
		files, err := c.fileSocket.Take()
		defer c.fileSocket.Close(files...)
		if err != nil {
			return c.fail(m, err)
		}
		request.File = passed(files[0])
	}
	grant, err := provider.Do(c.session, provider.OpenXRCD, request)
	return c.answer(proto.OpenXRCD.Untyped, m, &grant, err)
}

// passed is the descriptor of a file that was passed, as a syscall.Conn.
type passed int

// SyscallConn implements syscall.Conn.
func (p passed) SyscallConn() (syscall.RawConn, error) { return p, nil }

// Control implements syscall.RawConn.
func (p passed) Control(f func(fd uintptr)) error {
	f(uintptr(p))
	return nil
}

// Read implements syscall.RawConn.
func (p passed) Read(func(fd uintptr) (done bool)) error { return unix.EOPNOTSUPP }

// Write implements syscall.RawConn.
func (p passed) Write(func(fd uintptr) (done bool)) error { return unix.EOPNOTSUPP }
