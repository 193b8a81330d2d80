import { sql } from 'kysely'
import { PASSKEY_ANSWER_MS, type PasskeyAnswer, type PasskeyStep } from '../../domain/connection/passkey.ts'
import type { InstanceId } from '../../domain/ids.ts'
import { passkeyAnswerPlace } from '../encryption/sealing.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne, oneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'

/** The outcome of an answer. `not_requested`: WhatsApp is not asking for it now, or the goal is not `online`. */
export type AnswerOutcome = 'accepted' | 'not_requested' | 'expired' | 'no_instance'

interface Answering {
  id: InstanceId
  stage: PasskeyStep['stage']
  answer: Uint8Array
}

interface Taking {
  lease: Lease
  goalVersion: number
}

/** Passes the answers of people to the node that runs the connection. */
export class PasskeyAnswers {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
  }

  async put(id: InstanceId, answer: PasskeyAnswer): Promise<AnswerOutcome> {
    const sealed = this.#core.sealing.seal(id, passkeyAnswerPlace(id), Buffer.from(JSON.stringify(answer)))
    const outcome = await this.#core.write(this.#operations.put, { id, stage: answer.stage, answer: sealed })
    if (outcome === 'accepted') this.#core.hints.publish('goal', id)
    return outcome
  }

  async take(lease: Lease, goalVersion: number): Promise<PasskeyAnswer | null> {
    const sealed = await this.#core.write(this.#operations.take, { lease, goalVersion })
    const plain = sealed && this.#core.sealing.tryOpen(lease.instanceId, passkeyAnswerPlace(lease.instanceId), sealed)
    return plain && (JSON.parse(plain.toString()) as PasskeyAnswer)
  }

  /** Erases answers that nobody has read in time. */
  async eraseOld(): Promise<void> {
    const { db, now } = this.#core.statements
    const old = await this.#core.reader.query(
      db
        .selectFrom('passkey_answers')
        .select('instance_id')
        .where('answered_at', '<=', sql<number>`${now} - ${sql.lit(PASSKEY_ANSWER_MS)}`),
    )
    for (const { instance_id } of old) await this.#core.write(this.#operations.erase, instance_id)
  }
}

function operations({ statements }: Core) {
  const { db, now: clock } = statements
  const erasing = (id: InstanceId) => db.deleteFrom('passkey_answers').where('instance_id', '=', id)

  return {
    put: oneByOne(
      'connections.answer_passkey',
      ({ id }: Answering) => id,
      async (tx, { id, stage, answer }): Promise<AnswerOutcome> => {
        const [found] = await tx.query(
          statements.locking(
            db
              .selectFrom('connections')
              .innerJoin('instances', 'instances.id', 'connections.instance_id')
              .innerJoin('leases', 'leases.instance_id', 'connections.instance_id')
              .select(['passkey', 'goal', 'goal_version', 'leases.epoch', clock.as('now')])
              .where('connections.instance_id', '=', id)
              .where('instances.deleted_at', 'is', null),
            'update',
            'connections',
          ),
        )
        if (found === undefined) return 'no_instance'
        const step = found.passkey === null ? null : (JSON.parse(found.passkey) as PasskeyStep)
        if (step?.stage !== stage || found.goal !== 'online') return 'not_requested'
        if (step.expiresAt <= found.now) return 'expired'
        await tx.query(erasing(id))
        await tx.query(
          db.insertInto('passkey_answers').values({
            instance_id: id,
            goal_version: found.goal_version,
            epoch: found.epoch,
            answer,
            answered_at: found.now,
          }),
        )
        return 'accepted'
      },
      outcome => outcome === 'accepted',
    ),

    take: fencedOneByOne(
      'connections.take_passkey',
      async (tx, { lease, goalVersion }: Taking): Promise<Uint8Array | null> => {
        const [row] = await tx.query(
          erasing(lease.instanceId).returning(['goal_version', 'epoch', 'answer', 'answered_at', clock.as('now')]),
        )
        if (row === undefined || row.epoch !== lease.epoch || row.goal_version !== goalVersion) return null
        return row.now - row.answered_at < PASSKEY_ANSWER_MS ? row.answer : null
      },
    ),

    erase: oneByOne(
      'connections.erase_passkey_answer',
      (id: InstanceId) => id,
      async (tx, id) => {
        await tx.query(erasing(id).where('answered_at', '<=', sql<number>`${clock} - ${sql.lit(PASSKEY_ANSWER_MS)}`))
      },
    ),
  }
}
