package compat

// ForkStatus tells whether a program that forks keeps its regions (ibv_fork_status): ForkUnneeded.
type ForkStatus int

// The statuses.
const (
	ForkDisabled ForkStatus = 0
	ForkEnabled  ForkStatus = 1
	ForkUnneeded ForkStatus = 2
)

// ForkInit prepares for fork(2) (ibv_fork_init). There is nothing to do: a card pins no pages that a fork could take
// away. A Go program does not fork without exec; over the service the session stays the parent's.
func ForkInit() error { return nil }

// IsForkInitialized returns ForkUnneeded (ibv_is_fork_initialized).
func IsForkInitialized() ForkStatus { return ForkUnneeded }
