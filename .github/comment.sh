#!/usr/bin/env bash
# Posts what a change means as one comment on its pull request, and updates that comment from then on.
# meaning.md comes from a run with code of the pull request, so it is data: it is bounded, its first line is
# checked, and it may hold no mention, link, image or HTML but that for folding, none of which corpus diff writes. Which pull request it belongs to is asked of GitHub, by the commit that the
# run was for, and not taken from the artifact.
#
# Needs: GH_TOKEN (may write pull requests), GITHUB_REPOSITORY, HEAD_SHA, HEAD_REPOSITORY; a file to post as $1.
set -euo pipefail

file=$1
marker='<!-- corpus diff -->'
most_bytes=65000

if [ ! -f "$file" ] || [ -L "$file" ]; then
  echo "There is nothing to post."
  exit 0
fi
if [ "$(wc -c < "$file")" -gt "$most_bytes" ] || [ "$(head -n 1 "$file")" != "$marker" ]; then
  echo "::error::The artifact is not what corpus diff writes; nothing is posted."
  exit 1
fi
foreign='@[0-9A-Za-z]|://|(?i:\bwww\.)|(?<!\\)(?:\\\\)*(?:\]\(|<(?!/?(?:details|summary|span)>))'
if LC_ALL=C grep --quiet --text --perl-regexp --regexp="$foreign" <(tail -n +2 "$file"); then
  echo "::error::The artifact holds a mention, a link or HTML, which corpus diff never writes; nothing is posted."
  exit 1
fi
case $HEAD_SHA in
  *[!0-9a-f]* | "") echo "::error::Not a commit: $HEAD_SHA"; exit 1 ;;
esac

number=$(gh api --paginate "repos/$GITHUB_REPOSITORY/pulls?state=open&per_page=100" \
  --jq ".[] | select(.head.sha == \"$HEAD_SHA\" and .head.repo.full_name == env.HEAD_REPOSITORY) | .number" | head -n 1)
case $number in
  *[!0-9]* | "") echo "No open pull request is at $HEAD_SHA any more."; exit 0 ;;
esac

comment=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$number/comments?per_page=100" \
  --jq ".[] | select(.user.login == \"github-actions[bot]\" and (.body | startswith(\"$marker\"))) | .id" | head -n 1)
if [ -n "$comment" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$comment" --field "body=@$file"
  echo "Updated the comment on pull request $number."
else
  gh api --silent --method POST "repos/$GITHUB_REPOSITORY/issues/$number/comments" --field "body=@$file"
  echo "Commented on pull request $number."
fi
