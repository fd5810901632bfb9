await 5 exists src-beacons.ready || { cat src-beacons.err >&2; fail "beacons cannot be watched on the control network"; }
