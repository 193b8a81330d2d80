/**
 * Finds the first fetches of each instance without reading those of the others. A node of the previous version searches
 * for the first fetch of all instances, so it reads all rows.
 */
export function fetchesByInstance(): string[] {
  return ['drop index media_fetches_due', 'create index media_fetches_first on media_fetches (instance_id, due_at)']
}
