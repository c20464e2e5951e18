package ib

// State is the kernel's join state of librdmacm's flags, as its rdma_ucm makes it; 0 for flags that there are none of.
func (n JoinFlags) State() JoinState {
	switch n {
	case JoinFullMember:
		return JoinStateFullMember
	case JoinSendOnlyFullMember:
		return JoinStateSendOnlyFullMember
	}
	return 0
}

// AllJoinStates are the bits of a join state.
const AllJoinStates = JoinStateFullMember | JoinStateNonMember | JoinStateSendOnlyNonMember | JoinStateSendOnlyFullMember

// Receives says whether a member gets the group's messages. Who does not is never reported by IGMP or MLD.
func (n JoinState) Receives() bool { return n&(JoinStateFullMember|JoinStateNonMember) != 0 }
