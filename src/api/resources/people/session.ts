import { type Static, Type } from 'typebox'
import type { PanelSession } from '../../../store/sessions/sessions.ts'
import { moment, nullable, toIso } from '../schema-kit.ts'
import { accountInstancesSchema, roleSchema } from './account.ts'

const sessionIdSchema = Type.String({ description: 'The session.', examples: ['ses_4f9k2m7q1x0zb8d3'] })

export const sessionParams = Type.Object({ id: sessionIdSchema })

export const sessionSchema = Type.Object(
  {
    id: nullable(sessionIdSchema),
    account: nullable(
      Type.Object(
        {
          id: Type.String({ description: 'The account.' }),
          name: Type.String({ description: 'Its name.' }),
          role: roleSchema,
          instances: accountInstancesSchema,
          hasPassword: Type.Boolean({ description: 'Whether the account has a password.' }),
        },
        { title: 'SessionAccount', description: "The account; null for the admin key and the panel's password." },
      ),
    ),
    passwordSet: Type.Boolean({
      description: 'Whether the panel has a password, which can be used instead of the admin key.',
    }),
    sandbox: Type.Boolean({ description: 'Whether sandbox instances can be created.' }),
    version: Type.String({ description: 'The version of Pombal.' }),
  },
  { title: 'Session', description: 'The caller: a session of the panel, or (with a null ID) the admin key.' },
)

export type SessionView = Static<typeof sessionSchema>

export const listedSessionSchema = Type.Object(
  {
    id: sessionIdSchema,
    createdAt: moment('When the session started.'),
    expiresAt: moment('When it expires.'),
    userAgent: nullable(Type.String({ description: "The browser's user agent." })),
    current: Type.Boolean({ description: "Whether it is the caller's session." }),
  },
  { title: 'ListedSession' },
)

export type ListedSessionView = Static<typeof listedSessionSchema>

export function listedSessionView(session: PanelSession, currentId: string): ListedSessionView {
  const { id, createdAt, expiresAt, userAgent } = session
  return { id, createdAt: toIso(createdAt), expiresAt: toIso(expiresAt), userAgent, current: id === currentId }
}
