// Package needs skips tests whose requirements this machine does not meet: a program, a file of a package, root, a
// namespace. Each reason begins with "needs", names what is missing, and says how to get it. Tests call other programs
// only by this package. In CI's main run nothing may be missing, and hack/fresh.sh accepts no other skip than these.
package needs
