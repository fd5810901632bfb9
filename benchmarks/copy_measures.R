# Fill the analysis cache of a campaign that multiply_campaign.py made: each trial gets the measures of the trial of which it is a copy.
# The cache is then as large as that of a campaign of real trials, so that reading it can be timed without measuring every trial.
#
# LC_ALL=C.UTF-8 Rscript benchmarks/copy_measures.R SOURCE CAMPAIGN
#
# The locale must be that in which `fab analyse` starts R, because the keys of the cache depend on it. Then time the analysis with
# LC_ALL=C.UTF-8 /usr/bin/time -v Rscript --vanilla --min-vsize=512M analysis/inst/analyse.R CAMPAIGN
suppressMessages(library(samovar))
own <- \(name) getFromNamespace(name, "samovar")
folders <- commandArgs(TRUE)
treatment_of <- \(campaign) {
  trials <- campaign$plan$trials
  stats::setNames(vapply(trials, \(t) paste(c(t$part, unlist(t$treatment)), collapse = " "), ""), vapply(trials, \(t) t$id, ""))
}

source <- read_campaign(folders[1])
measures <- lapply(source$manifests, \(manifest) measure_trial(source$folder, manifest))
names(measures) <- treatment_of(source)[names(measures)]

# The checksums of the traces are taken from the manifests and not checked here; `fab verify` checks them.
campaign <- read_campaign(folders[2])
paths <- own("manifest_path")(names(campaign$manifests))
recorded <- lapply(campaign$manifests, \(m) vapply(m$files, \(f) f$sha256, ""))
manifest_sums <- own("sha256_files")(file.path(campaign$folder, paths))
sums <- stats::setNames(c(manifest_sums, unlist(recorded)), c(paths, unlist(lapply(campaign$manifests, own("trial_paths")))))
own("write_index")(campaign$folder, campaign$seen[, sha256 := sums[path]], campaign$parsed)

version <- code_version()
keys <- Map(\(manifest, files) own("cache_key")(version, c(manifest, files)), manifest_sums, recorded)
treatments <- treatment_of(campaign)[names(campaign$manifests)]
entries <- Map(list, id = names(campaign$manifests), treatment = treatments, key = keys)
rm(campaign, sums, recorded)
own("share_out")(split(entries, (seq_along(entries) - 1L) %/% 100L), 2L, \(some) {
  for (one in some) own("store_write")(replace(measures[[one$treatment]], "id", one$id), own("entry_path")(folders[2], one$key))
}, \(i, done) NULL)
