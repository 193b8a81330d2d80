import type { FastifyRequest } from 'fastify'
import type { TString } from 'typebox'
import type { Scope } from '../../domain/access.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { RefusalCode } from '../../domain/refusal.ts'

const NAMES = ['react', 'removeReaction', 'editMessage', 'deleteMessage', 'markRead'] as const
export type CommandName = (typeof NAMES)[number]

/** The same calls exist twice: with a token, for its own instance, and with the admin key, for any instance. */
export interface CommandScope {
  /** The address of a message. */
  path: string
  /** The parameters of `path`. */
  params: Record<string, TString>
  /** The operation IDs. */
  names: Record<CommandName, string>
  tags: string[]
  /** The sentence that says how the result is reported. */
  outcome: string
  /** The scope that a key needs. */
  config: { scope?: Scope }
  refusals: RefusalCode[]
  /** @throws Refusal `instance_not_found` */
  targetOf(request: FastifyRequest): Promise<{ instanceId: InstanceId; messageId: MessageId }>
}
