# A busy loop, as a load on the processor.
while :; do :; done
