package cm

import (
	"container/heap"
	"time"
)

// timer calls expire once, when its time has come. The zero timer does not run.
type timer struct {
	at     time.Time
	expire func(now time.Time)
	place  int // in the heap, from 1 on; 0 when it does not run
}

// timers are those that run, by their times: a heap.
type timers []*timer

// set has a timer run until a time, whether it ran or not.
func (t *timers) set(one *timer, at time.Time) {
	one.at = at
	if one.place == 0 {
		heap.Push(t, one)
	} else {
		heap.Fix(t, one.place-1)
	}
}

func (t *timers) stop(one *timer) {
	if one.place != 0 {
		heap.Remove(t, one.place-1)
	}
}

func (t timers) first() (at time.Time, some bool) {
	if len(t) == 0 {
		return at, false
	}
	return t[0].at, true
}

// due stops the timer whose time has come first; nil if none's has.
func (t *timers) due(now time.Time) *timer {
	if at, some := t.first(); !some || at.After(now) {
		return nil
	}
	return heap.Pop(t).(*timer)
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i+1, j+1
}

func (t *timers) Push(one any) {
	*t = append(*t, one.(*timer))
	(*t)[len(*t)-1].place = len(*t)
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	one := (*t)[last]
	(*t)[last] = nil
	*t, one.place = (*t)[:last], 0
	return one
}
