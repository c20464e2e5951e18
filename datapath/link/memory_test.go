package link

import "testing"

func TestMemoryWire(t *testing.T) {
	a, b, err := MemoryWire()
	if err != nil {
		t.Fatal(err)
	}
	next, got := 0, 0
	var burst [MaxBurst][]byte
	for got < 10*memFrames {
		for frame := a.Reserve(); frame != nil; frame = a.Reserve() {
			frame[0], frame[1] = byte(next), byte(next>>8)
			a.Commit(2)
			next++
		}
		a.Flush()
		n := b.Receive(burst[:])
		for _, frame := range burst[:n] {
			if len(frame) != 2 || int(frame[0])|int(frame[1])<<8 != got&0xFFFF {
				t.Fatalf("frame %d is % x", got, frame)
			}
			got++
		}
		b.Release()
	}
	for _, l := range []Link{a, b} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
