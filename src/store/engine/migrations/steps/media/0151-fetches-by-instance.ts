/**
 * The first fetches of each instance are found without reading those of the others. A node of the previous version, which looks for the
 * first one of all, then reads all rows.
 */
export function fetchesByInstance(): string[] {
  return ['drop index media_fetches_due', 'create index media_fetches_first on media_fetches (instance_id, due_at)']
}
