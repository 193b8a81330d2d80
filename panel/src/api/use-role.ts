import { useQuery } from '@tanstack/react-query'
import { includesRole, type Role } from '../../../src/domain/access.ts'
import { sessionQuery } from './queries.ts'

/** Whether the signed-in person may do what needs `role`. The service decides; the panel only hides what it would refuse. */
export function useMay(role: Role): boolean {
  const { data: session } = useQuery(sessionQuery)
  return session !== undefined && includesRole(session.account?.role ?? 'owner', role)
}
