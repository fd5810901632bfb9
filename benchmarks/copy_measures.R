# Give each trial of a campaign of multiply_campaign.py the measures of the trial that it is a copy of, as if it had been measured: the cache then
# has as many tables as a campaign of real trials, and what remains is to read them.
# LC_ALL=C.UTF-8 Rscript benchmarks/copy_measures.R SOURCE CAMPAIGN
# The locale is that in which `fab analyse` starts R: in another one, the measures have other keys. Then measure the analysis with
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

# The checksums of the traces are those in the manifests, which is not checked: `fab verify` does.
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
