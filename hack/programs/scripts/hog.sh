# A busy loop of somebody else's.
while :; do :; done
