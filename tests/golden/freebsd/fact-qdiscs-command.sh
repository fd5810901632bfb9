for module in ipfw dummynet siftr; do
  if [ -e "/boot/kernel/$module.ko" ] || [ -e "/boot/modules/$module.ko" ] || kldstat -q -m "$module"; then echo "$module"; fi
done
echo codel pie fq_codel
if [ "$(sysctl -n kern.osreldate)" -lt 1400000 ]; then echo fq_pie; fi
