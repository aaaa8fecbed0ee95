import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AccessPolicies } from '../../http/access-policies.js';
import { BundleAccess } from '../bundle-access.js';
import { rememberAuthorised } from './authorised-bundle.js';

/** Lets the guard ask whether a caller reaches a bundle; the rule is {@link BundleAccess}'s. */
@Injectable()
export class BundleAccessPolicy implements OnModuleInit {
  constructor(
    private readonly policies: AccessPolicies,
    private readonly access: BundleAccess,
  ) {}

  onModuleInit(): void {
    this.policies.register('bundle', async (caller, id, deadline, request) => {
      rememberAuthorised(request, await this.access.authorise(caller, id, deadline));
    });
  }
}
