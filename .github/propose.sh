#!/usr/bin/env bash
# Commits the files that a job without a token that writes has left in a folder, and pushes them or proposes them.
#
#   propose.sh FOLDER BRANCH MESSAGE [TARGET]
#
# Only generated files are taken from the folder and, where no TARGET is named, data. A generated file that the folder lacks
# is deleted: `corpus build` writes it no longer. With a TARGET, they are pushed there; where that is refused, or without one,
# they are pushed to BRANCH, of which a pull request is opened. Without a TARGET its body is FOLDER/body.md.
set -euo pipefail
folder=$1 branch=$2 message=$3 target=${4:-}

names=(README.md docs/STATS.md docs/figures.md docs/figures docs/list docs/schema .github/ISSUE_TEMPLATE/suggest-a-paper.yml)
data=()
[ -n "$target" ] || data=(data/papers.yaml data/exclusions.yaml data/candidates.yaml data/searches.yaml data/arxiv.json)
if [ ! -f "$folder/README.md" ]; then
  echo "::error::$folder is not what corpus build has left: it has no README.md"
  exit 1
fi
git rm -r --quiet --ignore-unmatch -- "${names[@]}"
for name in "${names[@]}" "${data[@]}"; do
  if [ -e "$folder/$name" ]; then
    mkdir -p "$(dirname "$name")"
    cp -R -- "$folder/$name" "$(dirname "$name")/"
    git add -- "$name"
  fi
done
if git diff --cached --quiet; then
  echo "Everything is up to date."
  exit 0
fi
git config user.name "github-actions[bot]"
git config user.email "41898282+github-actions[bot]@users.noreply.github.com"
git commit --quiet --message "$message"

push() {
  # The token reaches git through its environment: it is on no command line and in no file.
  # shellcheck disable=SC2016
  git -c credential.helper='!f() { echo username=x-access-token; echo "password=$GH_TOKEN"; }; f' \
    push "$@"
}
url="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY.git"
if [ -n "$target" ] && push "$url" "HEAD:refs/heads/$target"; then
  exit 0
fi
push --force "$url" "HEAD:refs/heads/$branch"
body="$folder/body.md"
[ -z "$target" ] || echo "Merge this to bring the generated files up to date with the data." > "$body"
printf '\nTo start the checks, close and reopen this pull request.\n' >> "$body"
if [ -z "$(gh pr list --head "$branch" --state open --json number --jq '.[].number')" ]; then
  gh pr create --head "$branch" --title "$message" --body-file "$body"
else
  gh pr edit "$branch" --body-file "$body"
fi
