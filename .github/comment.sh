#!/usr/bin/env bash
# Posts what a change means as one comment on its pull request, and updates that comment from then on.
# comment.md was written by this repository's own code, in the job before (see comment.yml). Which pull request it
# belongs to is asked of GitHub, by the commit that the run was for, and not taken from any artifact.
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
  echo "::error::The file is not a comment of corpus diff; nothing is posted."
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
