package region

import "github.com/roced/roced/datapath/ring"

// Pieces is the memory of a scatter/gather list, or of a part of it.
type Pieces struct {
	all   [][]byte
	sizes []int // as the list has them; a piece is shorter if it is nowhere
	// Length is that of the whole list, in bytes.
	Length int
	// Signed says that some are of a region with signatures, and were not found.
	Signed bool
}

// Scatter writes a payload into the pieces from an offset on.
func (p *Pieces) Scatter(offset int, payload []byte) {
	for i, piece := range p.all {
		if offset >= p.sizes[i] {
			offset -= p.sizes[i]
			continue
		}
		n := min(p.sizes[i]-offset, len(payload))
		copy(piece[min(offset, len(piece)):], payload[:n])
		payload = payload[n:]
		offset = 0
	}
}

// Gather fills to with the pieces.
func (p *Pieces) Gather(to []byte) {
	for i, piece := range p.all {
		here := to[:p.sizes[i]]
		clear(here[copy(here, piece):])
		to = to[len(here):]
	}
}

// First is the first piece; nil if there is none.
func (p *Pieces) First() []byte {
	if len(p.all) == 0 {
		return nil
	}
	return p.all[0]
}

func (p *Pieces) reset() {
	p.all, p.sizes, p.Length = p.all[:0], p.sizes[:0], 0
	p.Signed = false
}

func (p *Pieces) add(piece []byte, n int) { p.all, p.sizes = append(p.all, piece), append(p.sizes, n) }

// Only makes all the pieces one.
func (p *Pieces) Only(piece []byte) {
	p.reset()
	p.add(piece, len(piece))
	p.Length = len(piece)
}

// Find finds the memory of a list from an offset on, as many bytes as there are up to a length. It reports whether
// access to all of the list is allowed.
func (p *Pieces) Find(t *Table, list ring.SGList, pd PD, write bool, offset, length int) bool {
	p.reset()
	for sge, some := list.Next(); some; sge, some = list.Next() {
		size := int(sge.Length)
		p.Length += size
		for from := min(offset, size); size > 0; {
			here := min(size-from, length)
			piece, n, ok := t.Find(sge, from, here, pd, write)
			if !ok {
				return false
			}
			if n == 0 && here > 0 {
				p.Signed = true
				return false
			}
			if n > 0 {
				p.add(piece, n)
			}
			if from, length = from+n, length-n; n == here {
				break
			}
		}
		offset -= min(offset, size)
	}
	return true
}
