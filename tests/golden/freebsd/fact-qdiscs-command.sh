for module in ipfw dummynet siftr; do
  if [ -e "/boot/kernel/$module.ko" ] || [ -e "/boot/modules/$module.ko" ] || kldstat -q -m "$module"; then echo "$module"; fi
done
release=$(sysctl -n kern.osreldate)
if [ "$release" -ge 1003000 ]; then echo codel pie fq_codel; fi
if [ "$release" -ge 1003000 ] && [ "$release" -lt 1400000 ]; then echo fq_pie; fi
