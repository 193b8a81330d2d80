import type { GroupDetails } from '../../src/domain/recipients/group.ts'
import type { KnownGroup } from '../../src/store/directory/directory.ts'
import { GroupDirectory } from '../../src/whatsapp/sending/group-directory.ts'

/**
 * A directory over rows in memory, which has no groups at first.
 * @param beforeAnswer runs before an answer of WhatsApp is recorded; if it throws, the store is unavailable
 * @param afterDenial runs after a denial was recorded
 */
export function createGroupDirectory(
  now: () => number = Date.now,
  beforeAnswer: () => void = () => undefined,
  afterDenial: () => void = () => undefined,
) {
  const rows = new Map<string, KnownGroup>()
  const groups = new GroupDirectory({
    lease: { instanceId: 'inst_0', owner: 'node', epoch: 1 },
    now,
    signal: new AbortController().signal,
    store: {
      directory: {
        readGroup: async (_, id) => rows.get(id) ?? null,
        recordGroups: async (_, described: readonly GroupDetails[], of) => {
          beforeAnswer()
          for (const details of described) rows.set(details.id, { details, asOf: of.now, queriedAt: of.now })
        },
        recordNoMember: async (_, id) => {
          rows.set(id, { details: null, asOf: now(), queriedAt: now() })
          afterDenial()
        },
      },
    },
  })
  return { groups, rows }
}
