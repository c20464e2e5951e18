// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The commands on the program's own memory. It is in a process file: a memfd that the service creates, one for a
// process, sparse and sealed, in which each page has the offset of its virtual address. The program maps pages of it
// over its memory, and copies the previous contents into them. Then it registers them: RegMR specifies a part of the
// file.
//
// The program requests the file's size, since the size of an address space depends on the processor and the kernel:
// addresses have 47 bits on x86-64 and 39 to 48 bits on arm64, and up to 56 or 52 bits if a program requests a high one.
//
// The pages must be in the file before the registration, which otherwise fails with EFAULT. While a region uses them
// they stay in the file. A program that removes them nevertheless (FALLOC_FL_PUNCH_HOLE, MADV_REMOVE) loses its session
// when the card accesses the hole.
var (
	// ShareMemory has a reply with a descriptor: the process file. With has_file it is the one that was passed (PassFile),
	// of another session of the same process.
	ShareMemory   = command(43, "share_memory", visitShareMemory, visitSharedMemory)
	RegMR         = command(provider.RegMR.Number, provider.RegMR.Name, visitRegMR, visitLeanMR)
	ReregMRMemory = command(45, "rereg_mr_memory", visitReregMRMemory, none)

	// RegFileMR and ReregFileMR are the same for memory that the program shares with others, in a file of its own: a memfd
	// or one in tmpfs, which it passes (PassFile), open for reading and writing. Offset is in that file.
	RegFileMR   = command(58, "reg_file_mr", visitRegMR, visitLeanMR)
	ReregFileMR = command(59, "rereg_file_mr", visitReregMRMemory, none)
)

// MaxProcessFile is the size of the largest process file, in bytes: of the largest address space of a process.
const MaxProcessFile = 1 << 56

// ShareMemoryRequest requests the process file.
type ShareMemoryRequest struct {
	HasFile bool
	Size    uint64 // bytes of the process's address space, in whole pages: the size of a new file
}

// SharedMemory is the process file, whose descriptor comes with the reply.
type SharedMemory struct{ Size uint64 } // bytes

// RegMRRequest is the request of provider.RegMR over the service. It registers the bytes from Offset to Offset+Length of
// the process file, or of the file that was passed. Their addresses begin at IOVA.
type RegMRRequest struct {
	PD     provider.Handle
	Access verbs.AccessFlags
	Length int
	IOVA   uint64
	Offset uint64
}

// ReregMRMemoryRequest is provider.ReregMRRequest with ReregChangeTranslation to a part of the process file.
type ReregMRMemoryRequest struct {
	MR     provider.Handle
	Flags  verbs.ReregFlags
	PD     provider.Handle
	Access verbs.AccessFlags
	IOVA   uint64
	Length int
	Offset uint64
}

func visitShareMemory(c *coder, r *ShareMemoryRequest) {
	c.flag("has_file", &r.HasFile)
	c.reserved(7)
	u64(c, "size", &r.Size)
}

func visitSharedMemory(c *coder, g *SharedMemory) { u64(c, "size", &g.Size) }

func visitRegMR(c *coder, r *RegMRRequest) {
	u32(c, "pd", &r.PD)
	u32(c, "access", &r.Access)
	c.whole("length", &r.Length)
	u64(c, "iova", &r.IOVA)
	u64(c, "offset", &r.Offset)
}

func visitReregMRMemory(c *coder, r *ReregMRMemoryRequest) {
	u32(c, "mr", &r.MR)
	u32(c, "flags", &r.Flags)
	u32(c, "pd", &r.PD)
	u32(c, "access", &r.Access)
	u64(c, "iova", &r.IOVA)
	c.whole("length", &r.Length)
	u64(c, "offset", &r.Offset)
}
