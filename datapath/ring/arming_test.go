// SPDX-License-Identifier: Apache-2.0

package ring

import "testing"

// A wait and a notification are armed independently, and each causes its own event.
func TestWaitAndNotificationAreApart(t *testing.T) {
	p, c, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	c.ArmWait()
	c.Arm(true)
	if ended := p.Disarm(p.Due(false)); !ended.Waits() || ended.Notifies() {
		t.Errorf("a plain entry ended %b", ended)
	}
	c.ArmWait()
	if ended := p.Disarm(p.Due(true)); !ended.Waits() || !ended.Notifies() {
		t.Errorf("a solicited entry ended %b", ended)
	}
	if armed := p.Armed(); armed != 0 {
		t.Errorf("still armed: %b", armed)
	}
}

// One notification ends all armings for notifications, whichever of them was due.
func TestOneNotificationForAllArmings(t *testing.T) {
	p, c, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	c.SetThreshold(5)
	c.ArmCount()
	c.Arm(true)
	c.Arm(false)
	if !takeArmed(p, false) || takeArmed(p, true) || p.Armed() != 0 {
		t.Errorf("not one notification; armed %b", p.Armed())
	}
}

// The count includes all unread completions, and decreases when the program reads completions.
func TestArmCount(t *testing.T) {
	for _, start := range starts {
		p, c, _ := completionEnds(t, CompletionGeometry(testEntries), start)
		c.SetThreshold(3)
		c.ArmCount()
		var e CQE
		for step, due := range []bool{false, false, false, true} {
			if step == 2 { // one is read in between
				c.Available(1)
				c.Get(&e)
				c.Publish()
			}
			p.Put(&testCQE)
			p.Publish()
			if got := takeArmed(p, true); got != due {
				t.Errorf("start %d, %d unread of 3: event %v", start, p.Unread(), got)
			}
		}
		c.SetThreshold(0)
		c.ArmCount()
		if !takeArmed(p, false) {
			t.Error("got no event with a threshold of 0")
		}
	}
}

// If the consumer's index is invalid, the queue counts as full.
func TestUnreadOfALiar(t *testing.T) {
	for _, start := range starts {
		for _, lie := range lies {
			p, _, memory := completionEnds(t, CompletionGeometry(testEntries), start)
			word(memory, consumerWords).Store(start - lie)
			if n := p.Unread(); n != testEntries {
				t.Errorf("consumer's index %d behind: %d unread", lie, n)
			}
		}
	}
}

// Armings are moved when the card switches to another queue. The program finds armings that were set later.
func TestArmingsGoAlong(t *testing.T) {
	from, old, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	to, fresh, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	old.SetThreshold(2)
	old.ArmCount()
	old.ArmWait()
	from.HandOver(to)
	if from.Armed() != 0 || to.Armed() != ArmedCount|ArmedWait || to.threshold.Load() != 2 {
		t.Errorf("armed %b and %b, threshold %d", from.Armed(), to.Armed(), to.threshold.Load())
	}
	old.Arm(true)
	if late := fresh.TakeLate(old); late != ArmedSolicited || to.Armed() != ArmedCount|ArmedWait|ArmedSolicited {
		t.Errorf("late %b, armed %b", late, to.Armed())
	}
	if fresh.SetThreshold(7); to.threshold.Load() != 7 {
		t.Errorf("threshold %d", to.threshold.Load())
	}
}

// Only slots with room for timestamps have them.
func TestStamps(t *testing.T) {
	stamped := testCQE
	stamped.Timestamp, stamped.Wallclock = 0x1112131415161718, 0x2122232425262728
	p, c, memory := completionEnds(t, StampedGeometry(2), 0)
	p.Put(&stamped)
	p.Publish()
	want := []byte{0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21}
	if got := memory[slotsOffset+64:][:16]; string(got) != string(want) {
		t.Errorf("% x, want % x", got, want)
	}
	var got CQE
	c.Available(1)
	if c.Get(&got); got != stamped || !p.Stamped() {
		t.Errorf("%+v, want %+v", got, stamped)
	}
	plain, polls, _ := completionEnds(t, CompletionGeometry(2), 0)
	plain.Put(&stamped)
	plain.Publish()
	got = CQE{}
	polls.Available(1)
	if polls.Get(&got); got != testCQE || plain.Stamped() {
		t.Errorf("%+v, want %+v", got, testCQE)
	}
}

// Threads that sleep on the index are armed independently.
func TestFutexIsApart(t *testing.T) {
	p, c, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	c.arm(ArmedFutex)
	c.ArmWait()
	if ended := p.Disarm(p.Due(false)); !ended.Sleeps() || !ended.Waits() || ended.Notifies() || p.Armed() != 0 {
		t.Errorf("ended %b, armed %b", ended, p.Armed())
	}
	if ended := p.Disarm(p.Due(true)); ended != 0 {
		t.Errorf("ended %b, want 0: nothing was armed", ended)
	}
}
