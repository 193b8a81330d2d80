import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import type { Operation } from '../engine/operation.ts'

/** How far the recorded last use of a key may be behind. */
const RECORD_EVERY_MS = 60_000

interface Use {
  instance_id: InstanceId
  id: string
  last_used_at: number
}

/** Records when keys were last used: in memory at each call, and once a minute in the store. A crash loses that minute. */
export class KeyUses {
  readonly #core: Core
  readonly #record: Operation<Use, void>
  #uses = new Map<string, Use>()
  #timer: NodeJS.Timeout | undefined

  constructor(core: Core) {
    this.#core = core
    const columns = { instance_id: 'text', id: 'text', last_used_at: 'integer' } as const
    const { now } = core.statements
    // The clock of this node may be ahead.
    const usedAt = sql<number>`case when input.last_used_at > ${now} then ${now} else input.last_used_at end`
    const update = core.statements.rows(columns, db =>
      db
        .updateTable('api_keys')
        .from('input')
        .set({ last_used_at: usedAt })
        .whereRef('api_keys.instance_id', '=', 'input.instance_id')
        .whereRef('api_keys.id', '=', 'input.id')
        // Another node may have recorded a later use.
        .where(sql<boolean>`coalesce(api_keys.last_used_at, 0) < ${usedAt}`),
    )
    this.#record = {
      name: 'apiKeys.recordUses',
      instanceId: () => '',
      run: async (tx, uses) => {
        await tx.each(update, uses)
        return []
      },
    }
  }

  note(instanceId: InstanceId, id: string, at: number): void {
    this.#uses.set(id, { instance_id: instanceId, id, last_used_at: at })
    this.#timer ??= setTimeout(() => void this.flush(), RECORD_EVERY_MS).unref()
  }

  /** Never rejects: uses that cannot be recorded now are recorded with the next ones. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // All nodes lock rows in the same order, which prevents deadlocks.
    const uses = [...this.#uses.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
    this.#uses = new Map()
    await Promise.all(
      uses.map(use =>
        this.#core.write(this.#record, use).catch(() => {
          if (!this.#uses.has(use.id)) this.#uses.set(use.id, use)
        }),
      ),
    )
  }
}

function placeOf(use: Use): string {
  return `${use.instance_id}/${use.id}`
}
