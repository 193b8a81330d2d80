import { type Static, Type } from 'typebox'
import type { AuditRecord } from '../../../store/audit/audit.ts'
import { moment, nullable, toIso } from '../schema-kit.ts'

const detailSchema = Type.Unsafe<string | number | boolean | null>({ type: ['string', 'number', 'boolean', 'null'] })

export const auditRecordSchema = Type.Object(
  {
    seq: Type.Integer({ description: 'From 1, without gaps.' }),
    at: moment('When it was recorded.'),
    by: Type.String({
      description:
        'Who: the ID of an account, an API key or a linking link; `token`, the token of the instance; ' +
        '`admin_key`; `panel`, a session opened with the admin key or the password of the panel; `nobody`, a failed ' +
        'sign-in; `command_line`, a command on the server.',
    }),
    byName: nullable(
      Type.String({ description: 'The name of the account or the key at that time; null for all others.' }),
    ),
    action: Type.String({ description: 'The `operationId` of the call.', examples: ['replaceToken'] }),
    instanceId: nullable(Type.String({ description: 'The instance, which may be deleted by now.' })),
    address: nullable(Type.String({ description: "The caller's address." })),
    details: Type.Unsafe<AuditRecord['details']>({
      type: 'object',
      additionalProperties: detailSchema,
      description: 'IDs and names, such as `keyId`. Never a text of a message or a secret.',
    }),
    digest: Type.String({ description: 'SHA-256 over this record and the digest of the one before, in hexadecimal.' }),
  },
  { title: 'AuditRecord' },
)

export type AuditRecordView = Static<typeof auditRecordSchema>

export const auditCheckSchema = Type.Object(
  {
    entries: Type.Integer({ description: 'The number of records.' }),
    digest: Type.String({
      description:
        'The digest of the newest record, which covers all of them. Note it elsewhere: somebody who can change the ' +
        'whole database could compute a new chain, but not one with this digest.',
    }),
    brokenAt: nullable(
      Type.Integer({
        description: 'The first record that is missing, or that does not match the one before; null: none.',
      }),
    ),
  },
  { title: 'AuditCheck' },
)

export type AuditCheckView = Static<typeof auditCheckSchema>

export function auditRecordView(record: AuditRecord): AuditRecordView {
  const { seq, at, actor, actorName, action, instanceId, address, details, digest } = record
  return { seq, at: toIso(at), by: actor, byName: actorName, action, instanceId, address, details, digest }
}
