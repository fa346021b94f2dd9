"""The execution of physical plans on one member.

``build`` makes operators of a plan, ``fragment`` drives one instance of a fragment, and ``pool``
shares threads between instances. ``operators`` holds the operators, ``evaluate`` the expressions,
``exchange`` the ends of streams. ``contract`` states the rules that every operator keeps.
"""
