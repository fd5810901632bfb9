for module in ipfw dummynet; do
  if kldstat -q -m "$module" || [ -e "/boot/kernel/$module.ko" ]; then echo "$module"; fi
done
if [ "$(sysctl -n kern.osreldate)" -ge 1003000 ]; then echo codel pie fq_codel fq_pie; fi
