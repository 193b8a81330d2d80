import { type Static, Type } from 'typebox'
import { MAX_ACCOUNT_INSTANCES, ROLES } from '../../../domain/access.ts'
import type { Account } from '../../../store/accounts/accounts.ts'
import { instanceIdSchema, nameSchema } from '../instance.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from '../schema-kit.ts'

export const roleSchema = oneOf(ROLES, {
  description:
    '`owner`: everything; `operator`: runs instances, but cannot read secrets or create or delete instances; ' +
    '`viewer`: only reads.',
})

export const accountInstancesSchema = nullable(
  Type.Unsafe<string[]>({
    type: 'array',
    items: instanceIdSchema,
    maxItems: MAX_ACCOUNT_INSTANCES,
    description: 'The instances that an operator or viewer is limited to; null: all instances, as for every owner.',
  }),
)

export const accountNameSchema = Type.String({
  description: 'The name to sign in with, such as an e-mail address: 1 to 100 characters, without regard to case.',
  examples: ['ana@example.com'],
})

export const accountSchema = Type.Object(
  {
    id: Type.String({ description: 'The account.', examples: ['acc_4f9k2m7q1x0z'] }),
    name: nameSchema,
    role: roleSchema,
    instances: accountInstancesSchema,
    createdAt: moment('When it was created.'),
    active: Type.Boolean({
      description: 'Whether the person can sign in: the invitation was accepted, or a login is bound.',
    }),
    oidc: Type.Boolean({ description: 'Whether a login of the OpenID Connect provider is bound to the account.' }),
    panelPassword: Type.Boolean({
      description:
        "Whether this account set the panel's password. That password is removed when the account is removed or is " +
        'no longer an owner.',
    }),
    invitationEndsAt: nullable(moment('When the open invitation ends, perhaps in the past; null if there is none.')),
  },
  { title: 'Account', description: 'A person who can sign in to the panel.' },
)

export const invitedAccountSchema = Type.Object(
  {
    account: accountSchema,
    url: Type.String({
      description: 'The link to send to the person. It works once and is shown only once.',
      examples: ['https://pombal.example/invitation#x8Kq2w…'],
    }),
  },
  { title: 'InvitedAccount' },
)

export type AccountView = Static<typeof accountSchema>
export type InvitedAccountView = Static<typeof invitedAccountSchema>

/** @param passwordSetter the account that set the password of the panel */
export function accountView(account: Account, passwordSetter: string | null): AccountView {
  const { id, name, role, instances, createdAt, isActive, hasIdentity, invitationEndsAt } = account
  return {
    id,
    name,
    role,
    instances: instances === null ? null : [...instances],
    createdAt: toIso(createdAt),
    active: isActive,
    oidc: hasIdentity,
    panelPassword: id === passwordSetter,
    invitationEndsAt: toIsoOrNull(invitationEndsAt),
  }
}
